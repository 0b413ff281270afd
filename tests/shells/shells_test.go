//go:build linux

package shells

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }

// world is a user who has made the links.
type world struct {
	*harness.World
	t    *testing.T
	dir  string // of the links
	said string // by "shell install"
}

func newWorld(t *testing.T, settings string) *world {
	t.Helper()
	w := &world{World: harness.NewWorldOutsideDefaults(t), t: t}
	harness.Write(t, w.UserSettings(), settings)
	w.dir = w.HomePath(".local/share/sandbox-sidecar/shells")
	install := exec.Command(harness.Binary(t), "shell", "install")
	install.Env = harness.Environ(w.World)
	said, err := install.CombinedOutput()
	if err != nil {
		t.Fatalf("shell install: %v: %s", err, said)
	}
	w.said = string(said)
	return w
}

func (w *world) link(name string) string { return filepath.Join(w.dir, name) }

func (w *world) command(name string, args ...string) *exec.Cmd {
	command := exec.Command(name, args...)
	command.Dir = w.Project
	command.Env = harness.Environ(w.World)
	return command
}

// trespass is a command line that writes to the project, and then outside.
func (w *world) trespass() string {
	return "echo in > inside; echo out > '" + filepath.Join(w.Outside, "file") + "'"
}

// mustBeConfined reports whether the trespass could do the one and not the
// other, and undoes it.
func (w *world) mustBeConfined(what string) {
	w.t.Helper()
	inside, outside := filepath.Join(w.Project, "inside"), filepath.Join(w.Outside, "file")
	if harness.Read(w.t, inside) != "in\n" {
		w.t.Errorf("%s: the shell did not run", what)
	}
	if harness.Read(w.t, outside) != "" {
		w.t.Errorf("%s: written outside", what)
	}
	os.Remove(inside)
	os.Remove(outside)
}

// The forms in which programs call a shell.
func TestForms(t *testing.T) {
	t.Parallel()
	w := newWorld(t, harness.Defaults(nil))
	trespass := w.trespass()
	script := filepath.Join(w.Project, "script")
	harness.Write(t, script, trespass+"\n")
	long := trespass + "; : " + strings.Repeat("x", 120<<10) // one argument may have 128 KiB

	// The control: the real shell can.
	if out, err := w.command("bash", "-c", trespass).CombinedOutput(); err != nil {
		t.Fatalf("without a sandbox: %v: %s", err, out)
	}
	if harness.Read(t, filepath.Join(w.Outside, "file")) == "" {
		t.Fatal("without a sandbox nothing was written outside")
	}
	os.Remove(filepath.Join(w.Outside, "file"))

	for name, c := range map[string]struct {
		args  []string
		stdin string
	}{
		"bash -c":              {[]string{w.link("bash"), "-c", trespass}, ""},
		"bash -lc":             {[]string{w.link("bash"), "-lc", trespass}, ""},
		"bash -ic":             {[]string{w.link("bash"), "-ic", trespass}, ""},
		"bash --posix -c":      {[]string{w.link("bash"), "--posix", "-c", trespass}, ""},
		"bash -c -l, Claude":   {[]string{w.link("bash"), "-c", "-l", trespass}, ""},
		"bash -eo pipefail -c": {[]string{w.link("bash"), "-uo", "pipefail", "-c", trespass}, ""},
		"bash -c in lines":     {[]string{w.link("bash"), "-c", strings.ReplaceAll(trespass, "; ", "\n")}, ""},
		"bash -c, long":        {[]string{w.link("bash"), "-c", long}, ""},
		"bash -c, arguments":   {[]string{w.link("bash"), "-c", trespass + `; [ "$0 $1" = "a b c" ]`, "a", "b c"}, ""},
		"bash script":          {[]string{w.link("bash"), script}, ""},
		"bash --norc script":   {[]string{w.link("bash"), "--norc", script, "-c"}, ""},
		"bash <stdin":          {[]string{w.link("bash")}, trespass},
		"bash -s <stdin":       {[]string{w.link("bash"), "-s", "x"}, trespass},
		"sh -c":                {[]string{w.link("sh"), "-c", trespass}, ""},
		"zsh -c":               {[]string{w.link("zsh"), "-c", trespass}, ""},
		"fish -c":              {[]string{w.link("fish"), "-c", trespass}, ""},
		"fish --command=":      {[]string{w.link("fish"), "--command=" + trespass}, ""},
		// The user of a test may have no shell.
		"sandbox-sh -c":    {[]string{"env", "SANDBOX_SHELL=/bin/sh", w.link("sandbox-sh"), "-c", trespass}, ""},
		"shell -c":         {[]string{"env", "SANDBOX_SHELL=/bin/sh", harness.Binary(t), "shell", "-c", trespass}, ""},
		"a login shell":    {[]string{"bash", "-c", "exec -a -bash " + w.link("bash") + ` -c "$0"`, trespass}, ""},
		"within a session": {[]string{w.link("bash"), "-c", w.link("sh") + ` -c "$0"`, trespass}, ""},
	} {
		command := w.command(c.args[0], c.args[1:]...)
		command.Stdin = strings.NewReader(c.stdin)
		out, err := command.CombinedOutput()
		w.mustBeConfined(name)
		if !bytes.Contains(out, []byte("refused by the sandbox")) {
			t.Errorf("%s: no report: %v: %s", name, err, out)
		}
	}
}

// What the real shell says is what the caller gets.
func TestTransparency(t *testing.T) {
	t.Parallel()
	w := newWorld(t, harness.Defaults(nil))
	for line, want := range map[string]string{
		"exit 3":                                "exit status 3",
		"kill -TERM $$":                         "signal: terminated",
		"printf 'a\\0b'; cat":                   "a\x00bstdin",
		"echo $0":                               "/bin/bash\n",
		`[ "$SHELL" = /bin/bash ] && echo $-`:   "hBc\n",
		"echo out; echo err >&2; exec 1>&-; : ": "out\nerr\n",
		"shopt -q login_shell || echo no login": "no login\n",
		"echo \"$(basename \"$(readlink -f /proc/$$/exe)\")\"": "bash\n",
	} {
		command := w.command(w.link("bash"), "-c", line)
		command.Env = append(command.Env, "SHELL="+w.link("bash"))
		command.Stdin = strings.NewReader("stdin")
		out, err := command.CombinedOutput()
		got := string(out)
		if err != nil && got == "" {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s: %q, want %q", line, got, want)
		}
	}
}

// A command line or a script is a tool, and what somebody types into is a
// terminal.
func TestKinds(t *testing.T) {
	t.Parallel()
	w := newWorld(t, harness.Defaults(harness.Sandbox{"apply_to": "terminal"}))
	file := filepath.Join(w.Outside, "file")
	command := w.command(w.link("bash"), "-c", w.trespass())
	if out, err := command.CombinedOutput(); err != nil || len(out) > 0 || harness.Read(t, file) == "" {
		t.Errorf("a tool, which the settings leave alone: %v: %s", err, out)
	}
	os.Remove(file)
	os.Remove(filepath.Join(w.Project, "inside"))

	for name, args := range map[string][]string{
		"bash":    {w.link("bash")},
		"bash -i": {w.link("bash"), "--norc", "-i"},
		"JetBrains": {
			w.link("bash"), "--rcfile", filepath.Join(w.Project, "rc"), "-i", // its jediterm-bash.integration
		},
		"fish": {w.link("fish"), "--no-config"},
	} {
		harness.Write(t, filepath.Join(w.Project, "rc"), "echo integration\n")
		terminal := w.command(args[0], args[1:]...)
		terminal.Env = append(terminal.Env, "TERM=xterm", "PS1=$ ")
		p := harness.StartTerminal(t, terminal)
		p.Type(w.trespass() + "\n")
		p.Type("echo done with it | tr d D; exit\n")
		p.Await("Done with")
		p.Status()
		w.mustBeConfined(name)
	}
}

// tmux starts its default-shell for each window.
func TestTmux(t *testing.T) {
	t.Parallel()
	w := newWorld(t, harness.Defaults(nil))
	harness.Write(t, w.HomePath(".tmux.conf"), "set -g default-shell "+w.link("bash")+"\n")
	socket := filepath.Join(t.TempDir(), "s")
	tmux := func(args ...string) string {
		command := w.command("tmux", append([]string{"-S", socket, "-f", w.HomePath(".tmux.conf")}, args...)...)
		out, err := command.CombinedOutput()
		if err != nil {
			t.Fatalf("tmux %q: %v: %s", args, err, out)
		}
		return string(out)
	}
	tmux("new-session", "-d", "-x", "120", "-y", "40")
	t.Cleanup(func() { _ = w.command("tmux", "-S", socket, "kill-server").Run() })
	tmux("send-keys", w.trespass()+"; echo done with it | tr d D", "Enter")
	harness.Eventually(t, "the command line has ended", func() bool {
		return strings.Contains(tmux("capture-pane", "-p"), "Done with")
	})
	if shown := tmux("capture-pane", "-p"); !strings.Contains(shown, "Read-only file system") &&
		!strings.Contains(shown, "Permission denied") {
		t.Errorf("the pane shows no refusal: %s", shown)
	}
	w.mustBeConfined("a window of tmux")
}

// sshd(8) runs a ForceCommand by the user's shell, and says in a variable what
// the client wanted.
func TestForceCommand(t *testing.T) {
	t.Parallel()
	w := newWorld(t, harness.Defaults(harness.Sandbox{"additional_read_only_paths": []string{"/etc/passwd"}}))
	// Called as ssh is: options, a host, and a command line.
	ssh := filepath.Join(w.Home, "ssh")
	harness.Write(t, ssh, `#!/bin/bash
subsystem=
while :; do
	case $1 in
	-s) subsystem=1; shift;;
	-o|-p|-l|-e) shift 2;;
	-*) shift;;
	*) break;;
	esac
done
shift # the host
[ -z "$subsystem" ] || set -- /usr/lib/openssh/sftp-server
cd '`+w.Project+`'
export SANDBOX_SHELL=/bin/sh # the user of a test may have none
SSH_ORIGINAL_COMMAND="$*" exec /bin/sh -c '`+w.link("sandbox-sh")+`'
`)
	if err := os.Chmod(ssh, 0o700); err != nil {
		t.Fatal(err)
	}
	c := w.remote(ssh)
	c.run(true, ssh, "host", "echo", "hello", ">", "said")
	c.mustHave(filepath.Join(w.Project, "said"), "hello\n")
	c.run(false, ssh, "host", "echo hello > '"+c.outside+"'")

	c.copies()
}

// Errors about the real shell name the variable or the link.
func TestTheRealShellIsMissing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, harness.Defaults(nil))
	harness.Write(t, filepath.Join(w.Project, "plain"), "")
	for name, c := range map[string]struct{ variable, want string }{
		"missing": {"/nowhere/bash", "use SANDBOX_SHELL: /nowhere/bash: no such file or directory"},
		"itself": {
			w.link("zsh"), "use SANDBOX_SHELL: " + w.link("zsh") + ": it is this program; name the real shell",
		},
		"not executable": {
			filepath.Join(w.Project, "plain"),
			"use SANDBOX_SHELL: " + filepath.Join(w.Project, "plain") + ": permission denied",
		},
		"a directory": {w.Project, "use SANDBOX_SHELL: " + w.Project + ": it is no program"},
		"a name":      {"bash", `SANDBOX_SHELL: expected an absolute path, found "bash"`},
	} {
		command := w.command(w.link("bash"), "-c", "echo it runs")
		command.Env = append(command.Env, "SANDBOX_SHELL="+c.variable)
		out, err := command.CombinedOutput()
		var failed *exec.ExitError
		if !errors.As(err, &failed) || failed.ExitCode() != 127 {
			t.Errorf("%s: %v, want status 127", name, err)
		}
		said := strings.Join(strings.Fields(string(out)), " ")
		if want := "sandbox-sidecar: " + c.want; said != want {
			t.Errorf("%s: %q, want %q", name, said, want)
		}
	}
	command := w.command(w.link("bash"), "-c", "echo $BASH_VERSION$ZSH_VERSION")
	command.Env = append(command.Env, "SANDBOX_SHELL=/bin/zsh")
	if out, err := command.Output(); err != nil || len(bytes.TrimSpace(out)) == 0 {
		t.Errorf("another shell: %v: %s", err, out)
	}
}

// A program may show what a shell prints at its start, so that is short.
func TestWarningsAreBrief(t *testing.T) {
	t.Parallel()
	w := newWorld(t, harness.Defaults(harness.Sandbox{"toolchains": []string{"go", "node", "rust"}}))
	command := w.command(w.link("bash"), "-c", "echo it runs")
	command.Dir = w.Home
	// This process was started with another home, which sessions here do not write.
	command.Env = append(command.Env, "SANDBOX_GROUP_OWNER=own")
	out, err := command.CombinedOutput()
	said := strings.Join(strings.Fields(string(out)), " ")
	if err != nil || !strings.Contains(said, "is your home directory") ||
		!strings.Contains(said, "more; `sandbox-sidecar policy` prints all") || strings.Count(said, "warning:") != 2 ||
		strings.Contains(said, "history") {
		t.Errorf("in the home directory: %v: %s", err, out)
	}
	harness.Write(t, w.UserSettings(), `{"terminal": {"sandbox": {"enabled": true`)
	out, err = w.command(w.link("bash"), "-c", "echo it runs").CombinedOutput()
	said = strings.Join(strings.Fields(string(out)), " ")
	if err == nil || !strings.Contains(said, ": error: ") || strings.Contains(said, "it runs") {
		t.Errorf("settings that are wrong: %v: %s", err, out)
	}
}

func TestInstall(t *testing.T) {
	t.Parallel()
	w := newWorld(t, harness.Defaults(nil))
	for _, want := range []string{
		`"terminal.integrated.profiles.linux": {`, "set -g default-shell " + w.dir + "/",
		"ForceCommand " + w.link("sandbox-sh"),
		"CLAUDE_CODE_SHELL_PREFIX='" + w.dir + "/",
	} {
		if !strings.Contains(w.said, want) {
			t.Errorf("install does not say %q: %s", want, w.said)
		}
	}
	install := func(dir string) (string, error) {
		out, err := w.command(harness.Binary(t), "shell", "install", "--dir", dir).CombinedOutput()
		return strings.Join(strings.Fields(string(out)), " "), err
	}
	// Again, with a link to a program that has moved.
	if err := errors.Join(os.Remove(w.link("bash")), os.Symlink("/moved", w.link("bash"))); err != nil {
		t.Fatal(err)
	}
	if out, err := install(w.dir); err != nil {
		t.Errorf("again: %v: %s", err, out)
	}
	if out, err := w.command(w.link("bash"), "-c", "echo it runs").Output(); err != nil || string(out) != "it runs\n" {
		t.Errorf("after that: %v: %s", err, out)
	}
	if err := errors.Join(os.Remove(w.link("bash")), os.WriteFile(w.link("bash"), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	if out, err := install(w.dir); err == nil || !strings.Contains(out, "a file that is not a link is in the way") {
		t.Errorf("a file in the way: %v: %s", err, out)
	}
	open := filepath.Join(t.TempDir(), "open")
	if err := errors.Join(os.Mkdir(open, 0o700), os.Chmod(open, 0o777)); err != nil {
		t.Fatal(err)
	}
	if out, err := install(open); err == nil || !strings.Contains(out, "choose a directory of your own") {
		t.Errorf("a directory that others may write: %v: %s", err, out)
	}
	full := t.TempDir()
	if err := os.WriteFile(filepath.Join(full, "main.go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := install(full); err == nil || !strings.Contains(out, "it holds other files") {
		t.Errorf("a directory that holds more: %v: %s", err, out)
	}
}
