//go:build unix

package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform"
	"github.com/sandbox-sidecar/sandbox-sidecar/spawn"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// asProgram makes the test binary run as the program.
const asProgram = "SANDBOX_SIDECAR_TEST_AS_PROGRAM"

func TestMain(m *testing.M) {
	// The stage and the watchdog start without an environment. "go test" passes
	// only flags, so any other first argument is for the program. Running the
	// tests instead would start programs whose watchdogs run the tests again.
	if os.Getenv(asProgram) != "" || len(os.Args) > 1 && !strings.HasPrefix(os.Args[1], "-") {
		main()
	}
	os.Exit(m.Run())
}

// sidecar runs the program with an empty home directory and no stdin.
func sidecar(t *testing.T, args ...string) (status int, stdout, stderr string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	command := exec.Command(self, args...)
	command.Env = []string{asProgram + "=1", "HOME=" + t.TempDir(), "PATH=/usr/local/bin:/usr/bin:/bin"}
	var out, errs bytes.Buffer
	command.Stdout, command.Stderr = &out, &errs
	var exit *exec.ExitError
	if err := command.Run(); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return command.ProcessState.ExitCode(), out.String(), errs.String()
}

func TestRun_CommandLines(t *testing.T) {
	t.Parallel()
	const unsandboxed = `^sandbox-sidecar: not sandboxed: no settings file turns the sandbox on\. ` +
		"Run `sandbox-sidecar init`, or use `exec --sandbox`\\."
	for _, test := range []struct {
		args           string
		status         int
		stdout, stderr string // patterns of the text on one line; an empty one is exactly nothing
	}{
		{"--help", 0, `^sandbox-sidecar gives.*usage: `, ""},
		{"-h", 0, "usage: ", ""},
		{"help", 0, "usage: ", ""},
		{"help exec", 0, `^usage: sandbox-sidecar exec .*-project`, ""},
		{"help nonsense", 2, "", `unknown command "nonsense"`},
		{"--version", 0, `^sandbox-sidecar \S+$`, ""},
		{"exec --version", 0, `^sandbox-sidecar \S+$`, ""},
		{"version", 0, `^sandbox-sidecar \S+$`, ""},
		{"version --json", 0, `^{ "version": "\S+", "platform": "\w+" }$`, ""},
		{"cache --json", 0, `^\[\]$`, ""},
		{"cache --json clear", 2, "", `--json is for the list of caches$`},
		{"allow --json", 0, `^\[\]$`, ""},
		{"allow --json 1", 2, "", `--json is for the list of what was refused$`},
		{"trust --show --json /", 0, `^{ "projectDir": "/", .*"exists": false`, ""},
		{"trust --json /", 2, "", `--json asks nothing: use it with --show or --digest$`},
		{"untrust --json /", 0, `^{ "projectDir": "/"`, ""},
		{"schema", 0, `^{ `, ""},
		{"nonsense", 2, "", `unknown command "nonsense" sandbox-sidecar: hint: .*help`},
		{"exce -- true", 2, "", `unknown command "exce": did you mean "exec"\?`},
		{"serve --help", 0, `^usage: sandbox-sidecar serve .*--log-level`, ""},
		{"--log-level loud", 2, "", `^usage: .*unknown level "loud".*$`},
		{"serve --log-level info+2", 2, "", `unknown level "info\+2"`},
		{"serve --log-format xml", 2, "", `unknown format "xml"`},
		{"serve --settings relative.json", 2, "", `expected an absolute path, found "relative.json"`},
		{"serve extra", 2, "", `unexpected argument "extra"`},
		{"policy --projcet x", 2, "", `: flag provided but not defined: --projcet: did you mean --project\?$`},
		{"serve --no-such-flag", 2, "", `^usage: .*: flag provided but not defined: --no-such-flag$`},
		{"exec --project", 2, "", `: flag needs an argument: --project$`},
		{"policy --json=x", 2, "", `: invalid boolean value "x" for --json: parse error$`},
		{"learn -o= -- true", 2, "", `: -o is empty$`},
		{"learn --project= -- true", 2, "", `: --project is empty$`},
		{"help help", 0, "^sandbox-sidecar gives.*usage: ", ""},
		{"help mcp", 0, "start, input, output, stop", ""},
		{"explain raed x", 2, "", `found "raed": did you mean "read"\?$`},
		{"cache cleaar", 2, "", `unexpected argument "cleaar": did you mean "clear"\?$`},
		{"cache clear no-such-set", 2, "", `"no-such-set" is no toolchain, agent or absolute path$`},
		{"completion fishy", 2, "", `found "fishy": did you mean "fish"\?$`},
		{"shell instal", 2, "", `"instal" is no script: did you mean "install"\?$`},
		{"shell uninstall", 2, "", `there is no uninstall: take the links out of other programs' settings, and remove "`},
		{"serve", 1, "", `.`}, // stdin ends before a shutdown request
		{"doctor extra", 2, "", `unexpected argument "extra"`},
		{"policy --kind robot", 2, "", `--kind: expected "terminal" or "tool", found "robot"`},
		{"policy --project /no/such/dir", 2, "", `--project: "/no/such/dir" is not a directory`},
		{"policy extra", 2, "", `unexpected argument "extra"`},
		{"policy --project /", 0, `^a terminal in "/", policy [0-9a-f]{32} `, ""},
		{"policy --project /", 0, ` hosts all that are not denied, as the network is allowed denied hosts none `, ""},
		{"policy --project / --json", 0, `^{.*"policyId"`, ""},
		{
			"explain write /", 0,
			`^allowed: a terminal is not sandboxed: no settings file turns the sandbox on note: .* turns it on$`, "",
		},
		{"explain read x --json", 0, `^{.*"allowed": true`, ""},
		{"explain read", 2, "", `expected ACCESS and TARGET, as in: explain read ~/\.ssh`},
		{"explain write / --check", 0, `^allowed: `, ""},
		{"explain chew x", 2, "", `ACCESS: expected one of read, write, execute, connect_unix, connect, bind, sign, ` +
			`found "chew"`},
		{"trust / /", 2, "", `unexpected argument "/"`},
		{"trust /no/such/dir", 2, "", `"/no/such/dir" is not a directory`},
		{"trust --show /", 0, `^"/" has no settings of its own \("/.zed/settings.json"\)$`, ""},
		{"trust /", 1, "", `^sandbox-sidecar: trust project: "/.zed/settings.json": ` +
			`there is no such file, so there is nothing to trust$`},
		{"untrust /", 0, `has no settings of its own`, ""},
		{"exec", 2, "", `no command given`},
		{"exec -- sh -c exit~7", 7, "", unsandboxed + "$"},
		{"exec -- echo -n --help", 0, `^--help$`, unsandboxed + "$"},
		{"exec -- sh -c kill~-TERM~$$", -1, "", unsandboxed + "$"},
		{"exec -- /no/such/program", 127, "", unsandboxed +
			` sandbox-sidecar: execute: "/no/such/program": no such file or directory sandbox-sidecar: hint: .*$`},
		{"exec -- no-such-program", 127, "", `execute: "no-such-program": executable file not found`},
		{"exec -- /etc/passwd", 126, "", `execute: "/etc/passwd": permission denied`},
		{"exec -- /", 126, "", `execute: "/": permission denied`},
		{"completion", 2, "", `expected bash, zsh or fish`},
		{"completion csh", 2, "", `expected bash, zsh or fish, found "csh"`},
		{"completion bash", 0, `complete -F `, ""},
		{"man", 0, `^\.TH .*\.SH "EXAMPLES".*\.SH COMMANDS.*\.SH "FILES".*/sandbox\\-sidecar/settings\.json`, ""},
	} {
		t.Run(test.args, func(t *testing.T) {
			t.Parallel()
			args := strings.Fields(test.args)
			for i := range args {
				args[i] = strings.ReplaceAll(args[i], "~", " ")
			}
			status, stdout, stderr := sidecar(t, args...)
			if status != test.status || !match(test.stdout, stdout) || !match(test.stderr, stderr) {
				t.Errorf("exit status %d, want %d\nstdout %q, want %q\nstderr %q, want %q",
					status, test.status, stdout, test.stdout, stderr, test.stderr)
			}
		})
	}
}

func match(pattern, text string) bool {
	if pattern == "" {
		return text == ""
	}
	return regexp.MustCompile(pattern).MatchString(strings.Join(strings.Fields(text), " "))
}

func TestExec_RefusesUnreadableSettings(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "settings.json")
	if err := os.WriteFile(file, []byte(`{"terminal": {"sandbox": {"enabled": fals`), 0o600); err != nil {
		t.Fatal(err)
	}
	status, stdout, stderr := sidecar(t, "exec", "--kind", "tool", "--settings", file, "--", "echo", "ran")
	if status != 1 || stdout != "" || !strings.Contains(stderr, file+":1:") ||
		!match("nothing starts until it is fixed", stderr) {
		t.Errorf("a tool under settings that cannot be read: exit status %d, %q, %q", status, stdout, stderr)
	}
}

func TestExec_SaysWhyThereIsNoSandbox(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{}`: "not sandboxed: no settings file turns the sandbox on. Run `sandbox-sidecar init`",
		`{"terminal": {"sandbox": {"enabled": true, "apply_to": "tool"}}}`: "a terminal is not sandboxed: apply_to (",
		`{"terminal": {"sandbox": {"enabled": true}}}`:                     "",
	} {
		file := filepath.Join(t.TempDir(), "settings.json")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, _, stderr := sidecar(t, "exec", "--settings", file, "--", "echo", "ran")
		stderr = strings.Join(strings.Fields(stderr), " ")
		if said := strings.Contains(stderr, "not sandboxed: "); said != (want != "") ||
			!strings.Contains(stderr, want) {
			t.Errorf("%s: %q", text, stderr)
		}
	}
}

// Without settings, one flag or one command turns the sandbox on.
func TestTurningOn(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	off := filepath.Join(dir, "off.json")
	if err := os.WriteFile(off, []byte(`{"terminal": {"sandbox": {"enabled": false}}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		args         string
		status       int
		stdout, said string
	}{
		{"policy --settings " + off, 0, `is not sandboxed; if it were`, ""},
		{"policy --sandbox --settings " + off, 0, `enabled true command line`, ""},
		{"policy --mode strict --settings " + off, 0, `allow_network false mode: strict \(command line\)`, ""},
		{"explain --mode strict connect x --settings " + off, 0, `^refused: the network is off by mode: strict`, ""},
		{"exec --mode robot -- true", 2, "", `--mode: expected "strict", "standard", "relaxed" or "off", ` +
			`found "robot"`},
		{"exec --mode  -- true", 2, "", `--mode is empty`},
		{"exec --sandbox --mode off -- true", 2, "", `--sandbox and --mode off contradict each other`},
		{
			"exec --settings " + off + " -- true", 0, "",
			`a terminal is not sandboxed: enabled \(.*\) turns the sandbox off$`,
		},
		{"init --apply-to robot", 2, "", `--apply-to: expected "both", "tool" or "terminal", found "robot"`},
		{"init --mode off", 2, "", `--mode: expected "strict", "standard" or "relaxed", found "off"`},
		{"init --settings " + dir + "/new.json", 2, "", `there is no terminal to ask on: use --yes`},
		{
			"init --yes --settings " + off, 1, "",
			`off.json" stays as it is: line 1 says already whether the sandbox is on sandbox-sidecar: hint: put this into it yourself: `,
		},
		{
			"init --yes --apply-to tool --settings " + dir + "/new.json", 0,
			`^wrote ".*/new.json" .*sandboxed wherever --settings names this file: tools try it in a project: ` +
				`sandbox-sidecar exec --settings ".*/new.json" --kind tool -- touch ~/sandbox-test`, "",
		},
		{"init --yes --apply-to tool --settings " + dir + "/new.json", 0, `^the sandbox is on already for tools$`, ""},
		{"init --yes --apply-to tool --mode standard --settings " + dir + "/new.json", 0, `on already for tools$`, ""},
		{
			"init --yes --apply-to tool --mode strict --settings " + dir + "/new.json", 1, "",
			`the sandbox is on already, in the mode "standard": write "mode": "strict" into ".*/new.json" yourself$`,
		},
		{"policy --kind tool --settings " + dir + "/new.json", 0, `enabled true mode: standard`, ""},
	} {
		args := strings.Split(test.args, " ")
		status, stdout, stderr := sidecar(t, args...)
		if status != test.status || !match(test.stdout, stdout) || test.said != "" && !match(test.said, stderr) {
			t.Errorf("%s: exit status %d\n%s\n%s", test.args, status, stdout, stderr)
		}
	}
}

// What init has turned on is weaker on some machines, and it says so.
func TestInit_SaysWhatThisMachineLacks(t *testing.T) {
	t.Parallel()
	machine := func(weak map[string]platform.Status) spawn.Protections {
		protections := spawn.Protections{}
		for _, name := range platform.Protections {
			protections[name] = platform.Protection{Status: cmp.Or(weak[name], platform.Enforced)}
		}
		return protections
	}
	for want, weak := range map[string]map[string]platform.Status{
		"": {platform.Denials: platform.Degraded},
		"enforced in part: limits; sandbox-sidecar doctor says why, and what helps": {
			platform.Limits: platform.Degraded,
		},
		"not enforced here: file_tree, hidden_paths; enforced in part: protected_paths; " +
			"sandbox-sidecar doctor says why, and what helps": {
			platform.FileTree: platform.Absent, platform.HiddenPaths: platform.Absent,
			platform.ProtectedPaths: platform.Degraded,
		},
		"this machine cannot sandbox: tools do not start, terminals start with a warning; " +
			"sandbox-sidecar doctor says why": {platform.Filesystem: platform.Absent, platform.Limits: platform.Absent},
	} {
		if got := weaker(machine(weak)); got != want {
			t.Errorf("%v: %q, want %q", weak, got, want)
		}
	}
}

func TestDoctor_SaysWhatIsSandboxedHere(t *testing.T) {
	t.Parallel()
	_, stdout, _ := sidecar(t, "doctor")
	if !match(`^the sandbox in this directory: off terminals .*no settings file turns the sandbox on; .*off tools `,
		stdout) {
		t.Error(stdout)
	}
}

func TestDoctor_HasALineForEachProtection(t *testing.T) {
	t.Parallel()
	status, stdout, stderr := sidecar(t, "doctor")
	for _, name := range platform.Protections {
		line := `(?m)^(enforced|degraded|absent|note) +` + name + `( .*)?\n( {28}.*\n)* {10}\S`
		if !regexp.MustCompile(line).MatchString(stdout) {
			t.Errorf("%s has no line with an explanation:\n%s", name, stdout)
		}
	}
	confines := !regexp.MustCompile(`(?m)^absent +filesystem `).MatchString(stdout)
	if (status == 0) != confines || (stderr == "") != confines {
		t.Errorf("exit status %d, %q for:\n%s", status, stderr, stdout)
	}
}

func TestPrintError_PrintsTheHintOnALineOfItsOwn(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	printError(&out, fmt.Errorf("wrapped: %w",
		&spawn.Error{Attempt: "execute", Path: "/p", Cause: errors.New("no"), Hint: "do"}))
	printError(&out, errors.New("plain"))
	const want = "sandbox-sidecar: wrapped: execute: \"/p\": no\nsandbox-sidecar: hint: do\nsandbox-sidecar: plain\n"
	if out.String() != want {
		t.Errorf("printed %q, want %q", &out, want)
	}
}

func TestLearn_SaysWhatMayRun(t *testing.T) {
	t.Parallel()
	_, stdout, _ := sidecar(t, "learn", "--help")
	if !match(`execute programs of PATH, of its own directory and of toolchains: .* Other programs, .* are refused`,
		stdout) {
		t.Error(stdout)
	}
}

// What could not be written is no success, and the reason is on one line.
func TestRun_AFullDisk(t *testing.T) {
	t.Parallel()
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		harness.Skip(t, "dev_full", err.Error())
	}
	defer full.Close()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, args := range []string{
		"completion bash", "policy", "policy --json", "explain read /", "explain --check read /", "doctor",
		"doctor --json", "man", "version", "--version", "help", "help exec", "cache", "cache clear",
		"trust --show /", "untrust /", "shell install", "schema", "audit", "audit --schema", "init --yes",
	} {
		home := t.TempDir()
		if err := os.Chmod(home, 0o700); err != nil {
			t.Fatal(err)
		}
		var said bytes.Buffer
		command := exec.Command(self, strings.Fields(args)...)
		command.Env = []string{asProgram + "=1", "HOME=" + home, "PATH=/usr/local/bin:/usr/bin:/bin"}
		command.Stdout, command.Stderr = full, &said
		_ = command.Run()
		if code := command.ProcessState.ExitCode(); code != 1 || !match(
			`sandbox-sidecar: the output is not complete: `+
				`no space left on device: send it elsewhere$`, said.String()) ||
			strings.Count(said.String(), "no space") != 1 {
			t.Errorf("%s: exit status %d: %s", args, code, said.String())
		}
	}
}

// What init says is true of the next commands.
func TestInit_SaysWhatCounts(t *testing.T) {
	t.Parallel()
	const block = `{"terminal": {"sandbox": {%s}}}`
	for _, test := range []struct {
		own, zed, args string
		status         int
		stdout, stderr string // patterns
	}{
		{"", "", "", 0, `^wrote .*sandboxed from now on: terminals and tools try it in a project: ` +
			`sandbox-sidecar exec -- touch ~/sandbox-test`, ""},
		{"", "", "--apply-to tool", 0, `from now on: tools try it in a project: ` +
			`sandbox-sidecar exec --kind tool -- touch ~/`, ""},
		{
			`"apply_to": "tool"`, "", "", 1, "", `sandbox-sidecar/settings.json" stays as it is: ` +
				`line 1 says already what is sandboxed: apply_to is "tool" .*hint: .*"apply_to": "both"`,
		},
		{`"apply_to": "neither"`, "", "--apply-to tool", 1, "", `apply_to is "neither"`},
		{
			"", "{", "", 1, `^wrote `,
			`zed/settings.json:1:.*will not start until it is fixed: .*zed/settings.json:1 .*hint: fix`,
		},
		{
			`"allow_network": true`, "", "--mode strict", 0,
			`^changed \S+ these keys were in the file, and count more than the mode strict: ` +
				`allow_network sandboxed`, "",
		},
		{`"toolchains": ["go"]`, "", "", 0, `^changed \S+ sandboxed from now on`, ""},
	} {
		home := t.TempDir()
		for path, text := range map[string]string{"sandbox-sidecar": test.own, "zed": test.zed} {
			dir := filepath.Join(home, ".config", path)
			if path == "sandbox-sidecar" && text != "" {
				text = fmt.Sprintf(block, text)
			}
			if err := os.MkdirAll(dir, 0o700); err != nil {
				t.Fatal(err)
			}
			if text == "" {
				continue
			}
			if err := os.WriteFile(filepath.Join(dir, "settings.json"), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		self, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		command := exec.Command(self, append([]string{"init", "--yes"}, strings.Fields(test.args)...)...)
		command.Env = []string{asProgram + "=1", "HOME=" + home, "PATH=/usr/local/bin:/usr/bin:/bin"}
		var out, errs bytes.Buffer
		command.Stdout, command.Stderr = &out, &errs
		_ = command.Run()
		if status := command.ProcessState.ExitCode(); status != test.status || !match(test.stdout, out.String()) ||
			!match(test.stderr, errs.String()) {
			t.Errorf("%s, %s, %s: exit status %d\n%s\n%s", test.own, test.zed, test.args, status, &out, &errs)
		}
	}
}

// A sandbox that runs already is not changed by what else is on the command line.
// Nothing runs that would ignore it.
func TestExec_JoinRefusesEveryOtherFlag(t *testing.T) {
	t.Parallel()
	_, help, _ := sidecar(t, "exec", "--help")
	flags := regexp.MustCompile(`(?m)^  --([a-z]+)( \S+)?`).FindAllStringSubmatch(help, -1)
	refused := 0
	for _, flag := range flags {
		switch flag[1] {
		case "join", "help", "version":
			continue
		}
		args := []string{"exec", "--" + flag[1]}
		if flag[2] != "" {
			args = append(args, "tool")
		}
		status, _, stderr := sidecar(t, append(args, "--join", "x", "--", "true")...)
		want := "--" + flag[1] + " does not change the sandbox that --join names"
		if status != 2 || !strings.Contains(stderr, want) {
			t.Errorf("%s: status %d, %s", flag[1], status, stderr)
		}
		refused++
	}
	if refused < 8 {
		t.Errorf("the help lists %d flags: %v", refused, flags)
	}
	if status, _, stderr := sidecar(t, "exec", "--join", "x", "--", "true"); status != 1 ||
		!strings.Contains(stderr, "no sandbox has the id or name") {
		t.Errorf("control: status %d, %s", status, stderr)
	}
}
