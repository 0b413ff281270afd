//go:build linux

package protected

import (
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/deadline"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// creations are ways to create a protected name that does not exist, each with
// the name that it creates. Without the sandbox all of them do.
var creations = map[string][2]string{
	"open":                 {`echo x >.mcp.json`, ".mcp.json"},
	"append":               {`echo x >>.envrc`, ".envrc"},
	"mkdir":                {`mkdir .claude`, ".claude"},
	"mkdir -p":             {`mkdir -p .claude/hooks`, ".claude"},
	"symlink":              {`ln -s /tmp .vscode`, ".vscode"},
	"hard link":            {`echo x >y; ln y mise.toml`, "mise.toml"},
	"rename":               {`echo x >y; mv y opencode.json`, "opencode.json"},
	"rename of a tree":     {`mkdir y; echo x >y/settings.json; mv y .gemini`, ".gemini"},
	"fifo":                 {`mkfifo .vimrc`, ".vimrc"},
	"a pattern":            {`echo x >a.code-workspace`, "a.code-workspace"},
	"another pattern":      {`echo x >.aider.conf.yml`, ".aider.conf.yml"},
	"a dangling symlink":   {`ln -s .mcp.json y; echo x >y`, ".mcp.json"},
	"two symlinks":         {`mkdir s; ln -s ../.mcp.json s/y; ln -s s/y z; echo x >z`, ".mcp.json"},
	"a linked directory":   {`ln -s . d; echo x >d/.mcp.json`, ".mcp.json"},
	"absolute":             {`echo x >"$PWD/.mcp.json"`, ".mcp.json"},
	"dot dot":              {`mkdir d; cd d; echo x >../.mcp.json`, ".mcp.json"},
	"proc cwd":             {`echo x >/proc/self/cwd/.mcp.json`, ".mcp.json"},
	"proc thread":          {`echo x >/proc/thread-self/cwd/.mcp.json`, ".mcp.json"},
	"proc root":            {`echo x >"/proc/self/root$PWD/.mcp.json"`, ".mcp.json"},
	"a descriptor":         {`exec 7<.; echo x >/proc/self/fd/7/.mcp.json`, ".mcp.json"},
	"a link to proc":       {`ln -s /proc/self/cwd p; echo x >p/.mcp.json`, ".mcp.json"},
	"a link through proc":  {`ln -s /proc/self/cwd/.mcp.json p; echo x >p`, ".mcp.json"},
	"a missing directory":  {`mkdir .cargo; echo x >.cargo/config.toml`, ".cargo/config.toml"},
	"a directory in place": {`mkdir y; echo x >y/config.toml; mv -T y .cargo`, ".cargo/config.toml"},
	"moved and back": {
		`mkdir .cargo; mv -T .cargo y; echo x >y/config.toml; mv -T y .cargo`, ".cargo/config.toml",
	},
	"a closed way": {
		`mkdir .cargo; cd .cargo; chmod 0 ..; echo x >config.toml; chmod 755 ..`, ".cargo/config.toml",
	},
	"over an empty one":  {`mkdir .cargo y; echo x >y/config.toml; mv -T y .cargo`, ".cargo/config.toml"},
	"a linked way":       {`mkdir y; echo x >y/config.toml; ln -s y .cargo`, ".cargo/config.toml"},
	"a way by hard link": {`mkdir y; echo x >y/config.toml; ln -s y z; ln -P z .cargo`, ".cargo/config.toml"},
	"hidden memory": {
		`python3 -c 'import ctypes; ctypes.CDLL(None).prctl(4, 0, 0, 0, 0); open(".mcp.json", "w")'`, ".mcp.json",
	},
	"an editor's":     {`mkdir .helix; echo x >.helix/languages.toml`, ".helix"},
	"a container's":   {`echo x >y; mv y .devcontainer.json`, ".devcontainer.json"},
	"a model's":       {`mkdir y .github; echo x >y/mcp.json; ln y/mcp.json .github/mcp.json`, ".github/mcp.json"},
	"hidden plugins":  {`mkdir y; ln -s y .amp`, ".amp"},
	"linked settings": {`ln -s .vim y; mkdir -p y/ || mkdir .vim; echo x >.vim/coc-settings.json`, ".vim/coc-settings.json"},
	"the user's":      {`mkdir -p mine; echo x >mine/secret`, "mine/secret"},
}

// requireObserver skips a test on machines where the sidecar does not see calls
// before the kernel does.
func requireObserver(t *testing.T) {
	t.Helper()
	harness.Require(t, "protected_paths")
	if observes.Load() {
		return
	}
	e := newScene(t).start(harness.Defaults(nil), harness.Machine{})
	if p := e.Hello.Capabilities.Enforcement["denials"]; !strings.Contains(p.Mechanism, "seccomp") {
		harness.Skip(t, "user_notification", p.Detail)
	}
	observes.Store(true)
}

// observes is true once a sidecar has said that it sees calls before the kernel
// does. The machine does not change.
var observes atomic.Bool

func TestProtectedPathsCannotBeCreated(t *testing.T) {
	t.Parallel()
	requireObserver(t)
	controls, printed := withoutSandbox(t, maps.Keys(creations), func(_ *scene, name string) string {
		return creations[name][0]
	})
	confined, settings := map[string]shared{}, []string{"report", "ignore"}
	for _, denied := range settings {
		confined[denied] = share(t, harness.Defaults(harness.Sandbox{
			"protected_paths": []string{"mine/secret"}, "on_denied": denied,
		}))
	}
	for i, name := range slices.Sorted(maps.Keys(creations)) {
		c := creations[name]
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := os.Lstat(controls[name].ProjectPath(c[1])); err != nil {
				t.Fatalf("control: %v\n%s", err, printed)
			}
			for j, denied := range settings {
				if !harness.Turn(t, i+j, len(settings)) {
					continue
				}
				s, e := confined[denied].in(t)
				_, output, _, _ := e.run(c[0])
				if _, err := os.Lstat(s.ProjectPath(c[1])); err == nil || !strings.Contains(output, "not permitted") {
					harness.Breach(t, "%s: it was created (%v): %s", denied, err == nil, output)
				}
				explained, err := harness.Try(e.Editor, protocol.PolicyExplain, protocol.PolicyExplainParams{
					Kind: protocol.Tool, ProjectDir: s.Project, Access: "write", Target: s.ProjectPath(c[1]),
				})
				if err != nil || explained.Allowed {
					t.Errorf("%s: explain says otherwise: %+v, %v", denied, explained, err)
				}
				if denied == "ignore" {
					continue
				}
				harness.Eventually(t, "it is reported", func() bool {
					for _, d := range e.denials.All() {
						if d.Access == "create" && (d.Target+"/" == s.ProjectPath(c[1])+"/" ||
							strings.HasPrefix(s.ProjectPath(c[1]), d.Target+"/")) {
							return true
						}
					}
					return false
				})
			}
		})
	}
}

// What leads to a protected name may exist already.
func TestWaysToProtectedPathsCannotBeReplaced(t *testing.T) {
	t.Parallel()
	harness.Require(t, "protected_paths")
	protecting := share(t, harness.Defaults(harness.Sandbox{"protected_paths": []string{"mine/secret"}}))
	const filled, create = `mkdir z; echo x >z/secret; `, `mkdir mine; echo x >mine/secret`
	// ways are commands, each with what leads to the name before it.
	ways := map[string]string{}
	for before, commands := range map[string][]string{
		`mkdir mine`:              {`mv -T mine y; echo x >y/secret; mv -T y mine`},
		`mkdir y; ln -s y mine`:   {filled + `rm mine; mv -T z mine`},
		`mkdir y; ln -s y/ mine`:  {filled + `rm mine; ln -s z mine`},
		`echo x >mine`:            {`rm mine; ` + create, filled + `rm mine; mv -T z mine`},
		`mkfifo mine`:             {`rm mine; ` + create, filled + `rm mine; ln -s z mine`},
		`ln -s mine mine`:         {`rm mine; ` + create, filled + `rm mine; mv -T z mine`},
		`ln -s nothing mine`:      {`rm mine; ` + create, `mkdir nothing; echo x >mine/secret`},
		`echo x >y; ln -s y mine`: {`rm mine; ` + create},
	} {
		for _, command := range commands {
			ways[before+"; "+command] = before
		}
	}
	begin := func(s *scene, name string) (line string) {
		s.outside(ways[name])
		return strings.TrimPrefix(name, ways[name]+"; ")
	}
	there := func(s *scene) bool {
		_, err := os.Stat(s.ProjectPath("mine/secret"))
		return err == nil
	}
	controls, printed := withoutSandbox(t, maps.Keys(ways), begin)
	for name := range ways {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if !there(controls[name]) {
				t.Fatalf("control: without a sandbox it must be created: %s", printed)
			}
			s, e := protecting.in(t)
			if _, output, _, _ := e.run(begin(s, name)); there(s) {
				harness.Breach(t, "it was created: %s", output)
			}
		})
	}
}

// A regular file leads to no protected name, so it may come to the place of the
// directory: .config of kconfig, where mise has its own.
func TestFilesMayBeRenamedToWhereADirectoryIsMissing(t *testing.T) {
	t.Parallel()
	requireObserver(t)
	confined := share(t, harness.Defaults(nil))
	for _, command := range []string{
		"mv .tmp .config", "mv .tmp .config; mv .config .config.old; mv .config.old .config",
		"mkdir d; mv .tmp d/.config; mv d/.config .", "mv .tmp a; cp a .config.new; mv .config.new .config",
	} {
		t.Run(command, func(t *testing.T) {
			t.Parallel()
			s, e := confined.in(t)
			_, output, _, _ := e.run("echo new >.tmp; " + command)
			if got, err := os.ReadFile(s.ProjectPath(".config")); err != nil || string(got) != "new\n" {
				t.Errorf("%q, %v: %s", got, err, output)
			}
		})
	}
}

// A protected name that appears while a session runs is not replaced by a file,
// although a directory of that name would lead to another.
func TestFilesDoNotReplaceAProtectedNameThatAppears(t *testing.T) {
	t.Parallel()
	requireObserver(t)
	for settings, replaced := range map[string]bool{
		harness.Off(): true, // the control
		harness.Defaults(harness.Sandbox{"protected_paths": []string{"mine", "mine/secret"}}): false,
	} {
		s := newScene(t)
		e := s.start(settings, harness.Machine{})
		go func() {
			ready := func() bool {
				_, err := os.Stat(s.ProjectPath("ready"))
				return err == nil
			}
			if deadline.Until(time.Minute, ready) {
				_ = os.WriteFile(s.ProjectPath("mine"), []byte("outside"), 0o644)
			}
		}()
		_, output, _, _ := e.run("echo inside >x; touch ready; n=0; " +
			"until [ -s mine ] || [ $n = 600 ]; do sleep 0.1; n=$((n+1)); done; mv -f x mine")
		if got := harness.Read(t, s.ProjectPath("mine")); (got == "inside\n") != replaced {
			harness.Breach(t, "replaced: %t, want %t: %s", !replaced, replaced, output)
		}
	}
}

// closedWays keep a protected directory open, take away the right to reach it,
// and create the name by each call that can. "dir" is the open directory.
var closedWays = map[string]string{
	"openat":    `os.close(os.open("config.toml", os.O_CREAT | os.O_WRONLY, dir_fd=dir))`,
	"mkdirat":   `os.mkdir("config.toml", dir_fd=dir)`,
	"mknodat":   `os.mknod("config.toml", 0o600 | stat.S_IFREG, dir_fd=dir)`,
	"mkfifoat":  `os.mkfifo("config.toml", dir_fd=dir)`,
	"symlinkat": `os.symlink("/tmp", "config.toml", dir_fd=dir)`,
	"linkat":    `os.link("y", "config.toml", src_dir_fd=dir, dst_dir_fd=dir)`,
	"renameat":  `os.rename("y", "config.toml", src_dir_fd=dir, dst_dir_fd=dir)`,
	"renameat2": `if libc.renameat2(dir, b"y", dir, b"config.toml", 1): ` + // RENAME_NOREPLACE
		`raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))`,
	"bind":       `socket.socket(socket.AF_UNIX).bind(f"/proc/self/fd/{dir}/config.toml")`,
	"proc":       `open(f"/proc/self/fd/{dir}/config.toml", "w")`,
	"proc cwd":   `os.fchdir(dir); open("/proc/thread-self/cwd/config.toml", "w")`,
	"relative":   `os.fchdir(dir); open("config.toml", "w")`,
	"a symlink":  `os.fchdir(dir); os.symlink("config.toml", "l"); open("l", "w")`,
	"by proc":    `os.fchdir(dir); os.symlink("/proc/self/cwd/config.toml", "l"); open("l", "w")`,
	"hidden":     `libc.prctl(4, 0, 0, 0, 0); os.fchdir(dir); open("config.toml", "w")`,
	"hidden way": `os.symlink("config.toml", "l", dir_fd=dir); libc.prctl(4, 0, 0, 0, 0); os.fchdir(dir); open("l", "w")`,
	"a thread": `os.fchdir(dir); t = threading.Thread(target=lambda: open("config.toml", "w")); ` +
		`t.start(); t.join()`,
}

func TestProtectedPathsCannotBeCreatedBehindAClosedWay(t *testing.T) {
	t.Parallel()
	requireObserver(t)
	harness.RequirePrograms(t, "python3")
	const frame = `
import ctypes, os, socket, stat, threading
libc = ctypes.CDLL(None, use_errno=True)
os.mkdir(".cargo")
open(".cargo/y", "w").close()
top, dir = os.open(".", os.O_RDONLY), os.open(".cargo", os.O_RDONLY)
os.fchmod(top, 0)
try:
    `
	const end = `
finally:
    os.fchmod(top, 0o755)
`
	begin := func(s *scene, name string) (line string) {
		harness.Write(t, s.ProjectPath("act.py"), frame+closedWays[name]+end)
		return "python3 act.py"
	}
	there := func(s *scene) bool {
		_, err := os.Lstat(s.ProjectPath(".cargo/config.toml"))
		return err == nil
	}
	controls, printed := withoutSandbox(t, maps.Keys(closedWays), begin)
	confined := share(t, harness.Defaults(nil))
	for name := range closedWays {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if !there(controls[name]) {
				t.Fatalf("control: without a sandbox it must be created: %s", printed)
			}
			s, e := confined.in(t)
			_, output, _, _ := e.run(begin(s, name))
			if there(s) || !strings.Contains(output, "not permitted") {
				harness.Breach(t, "it was created (%t): %s", there(s), output)
			}
		})
	}
}

// A name is protected only where it counts, and what the user takes away is
// free.
func TestOtherNamesCanBeCreated(t *testing.T) {
	t.Parallel()
	requireObserver(t)
	s := newScene(t)
	e := s.start(harness.Defaults(harness.Sandbox{"protected_paths": []string{"!.claude", "!*.code-workspace"}}),
		harness.Machine{})
	_, output, status, _ := e.run(`set -e
mkdir sub; echo x >sub/.mcp.json; mv sub/.mcp.json sub/y; echo x >x.mcp.json; echo x >.mcp.jsonx; mkdir .cargo
echo x >.cargo/other; mkdir .claude; echo x >.claude/settings.json; echo x >a.code-workspace; echo x >/dev/null
echo fine >/dev/stdout; git init -q .; git config a.b c`)
	if status != 0 || !strings.Contains(output, "fine") {
		t.Errorf("status %d: %s", status, output)
	}
	if slices.ContainsFunc(s.reports(e), func(r string) bool { return !strings.Contains(r, ".git/") }) {
		t.Errorf("reports: %q", s.reports(e))
	}
	if _, err := os.Lstat(s.ProjectPath("a.code-workspace")); err != nil {
		t.Error(err)
	}
}

// The program that "sandbox-sidecar mcp" becomes lies beside the sidecar. If it
// is not installed, a session that could put one there would run outside later.
func TestTheProgramBesideTheSidecarCannotBeCreated(t *testing.T) {
	t.Parallel()
	requireObserver(t)
	const program = "bin/sandbox-sidecar"
	attacks := map[string]string{
		"open":        "cp /bin/true bin/sandbox-sidecar-mcp",
		"rename":      "cp /bin/true other; mv other bin/sandbox-sidecar-mcp",
		"symlink":     "ln -s /bin/true bin/sandbox-sidecar-mcp",
		"another bin": "mkdir other; cp /bin/true other/sandbox-sidecar-mcp; cp bin/* other; mv bin old; mv other bin",
	}
	there := func(s *scene) bool {
		_, err := os.Lstat(s.ProjectPath(program + "-mcp"))
		return err == nil
	}
	controls, printed := withoutSandbox(t, maps.Keys(attacks), func(s *scene, name string) string {
		harness.Write(t, s.ProjectPath(program), "#!/bin/sh\n")
		return attacks[name]
	})
	for name, line := range attacks {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if !there(controls[name]) {
				t.Fatalf("control: without a sandbox the attack must work:\n%s", printed)
			}
			s := newScene(t)
			harness.MakeDir(t, s.ProjectPath("bin"))
			harness.Victim(t, "cmd/sandbox-sidecar", s.ProjectPath(program))
			e := s.startWith(harness.Options{Settings: harness.Defaults(nil), Wrap: func(command *exec.Cmd) {
				command.Path = s.ProjectPath(program)
			}})
			if _, output, _, _ := e.run(line); there(s) {
				harness.Breach(t, "THE ATTACK WORKS:\n%s", output)
			}
		})
	}
}

// A version control system makes its own configuration with the repository.
// Where that exists, nobody adds one.
func TestOtherRepositoriesKeepTheirConfiguration(t *testing.T) {
	t.Parallel()
	requireObserver(t)
	confined := share(t, harness.Defaults(nil))
	for name, directory := range map[string]string{
		".hg/hgrc": ".hg", ".jj/repo/config.toml": ".jj/repo", "_darcs/prefs/defaults": "_darcs/prefs",
	} {
		command := "mkdir -p " + directory + "; echo x >" + name
		made, e := confined.in(t)
		_, output, _, end := e.run(command)
		if _, err := os.Lstat(made.ProjectPath(name)); err != nil {
			t.Errorf("%s: with a new repository: %v\n%s", name, err, output)
		}
		if found := made.review(end); !slices.Contains(found, "created "+name) {
			t.Errorf("%s: the review: %q", name, found)
		}
		s, e := confined.in(t)
		harness.MakeDir(t, s.ProjectPath(directory))
		_, output, _, _ = e.run(command)
		if _, err := os.Lstat(s.ProjectPath(name)); err == nil || !strings.Contains(output, "not permitted") {
			harness.Breach(t, "%s was created (%v): %s", name, err == nil, output)
		}
	}
}
