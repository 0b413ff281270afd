//go:build linux

package tests

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// TestExec_ChangesNothingOnTheWay runs what people write in shells, where RUN is
// the way to run a command: what a program inherits, and how it ends, is as
// without exec.
func TestExec_ChangesNothingOnTheWay(t *testing.T) {
	t.Parallel()
	for name, script := range map[string]string{
		"no standard input":  `RUN sh -c 'echo ok >f; exit 5' <&-; echo $?; cat f`,
		"no standard output": `RUN sh -c 'echo ok >f; exit 5' >&-; echo $?; cat f`,
		"no standard error":  `RUN sh -c 'echo ok >f; exit 5' 2>&-; echo $?; cat f`,
		"no streams at all":  `RUN sh -c 'echo ok >f; exit 5' <&- >&- 2>&-; echo $?; cat f`,
		"umask":              `for mask in 077 000 027; do umask $mask; RUN sh -c 'umask; touch u; stat -c %a u /tmp; rm u'; done`,
		"priority":           `nice -n 5 RUN nice`,
		"signals":            `RUN grep -E 'Sig(Blk|Ign)' /proc/self/status`,
		"ignored signals":    `trap '' HUP INT; RUN grep SigIgn /proc/self/status`,
		"a closed pipe":      `RUN yes | head -1; echo ${PIPESTATUS[0]}`,
		"a time limit":       `timeout 1 RUN sleep 300; echo $?`,
		"several at a time":  `seq 1 8 | xargs -P 4 -I{} RUN echo {} | sort -n`,
		"limits":             `ulimit -n 64; ulimit -c 0; RUN sh -c 'ulimit -n; ulimit -c'`,
		"every status":       `for n in 0 1 126 127 128 255; do RUN sh -c "exit $n"; echo $?; done`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			found := map[string]string{}
			for way, r := range ways(t) {
				out, err := r.shell(script).Output()
				found[way] = fmt.Sprintf("%v\n%s", err, out)
			}
			if found["by exec"] != found["directly"] {
				t.Errorf("by exec: %s\ndirectly: %s", found["by exec"], found["directly"])
			}
		})
	}
}

// shell runs a script of bash, where RUN is the way to run a command.
func (r run) shell(script string) *exec.Cmd {
	command := exec.Command("bash", "-c", strings.ReplaceAll(script, "RUN", strings.Join(r.prefix, " ")))
	command.Dir, command.Env = r.world.Project, append(harness.Environ(r.world), "TERM=xterm")
	return command
}

// A background process that holds the output ends with its command, so who reads
// it need not wait.
func TestExec_EndsWhoHoldsTheOutput(t *testing.T) {
	t.Parallel()
	out, err := ways(t)["by exec"].shell(`RUN sh -c 'sleep 300 & echo done' | cat`).Output()
	if err != nil || string(out) != "done\n" {
		t.Errorf("%q, %v", out, err)
	}
}

// TestExec_InProjectsOfAnyName works in projects whose names are hard to mount, to
// quote or to write in settings, and is refused git's hooks there.
func TestExec_InProjectsOfAnyName(t *testing.T) {
	t.Parallel()
	harness.RequirePrograms(t, "git")
	r := ways(t)["by exec"]
	for _, name := range []string{
		"a b", "nl\nx", `q"uote`, "s'q", `back\slash`, "col:on", "comma,x", "100%", "-dash", "*star", "[set]",
		"{a,b}",
		"#hash", "$HOME", "~", " lead", "trail ", "inv\xff\xfe", "日本", "esc\x1b[31m", "tab\tx",
		strings.Repeat("n", 255),
	} {
		t.Run(fmt.Sprintf("%.20q", name), func(t *testing.T) {
			t.Parallel()
			dir := r.world.ProjectPath(name)
			harness.MakeDir(t, dir)
			within := func(line string) (string, error) {
				command := r.command("sh", "-c", line)
				command.Dir = dir
				out, err := command.CombinedOutput()
				return string(out), err
			}
			git := exec.Command("git", "init", "-q")
			git.Dir, git.Env = dir, harness.Environ(r.world)
			if out, err := git.CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			if out, err := within("echo ok >f && git status -s && cat f"); err != nil || out != "?? f\nok\n" {
				t.Errorf("%v: %s", err, out)
			}
			_, _ = within("echo evil >.git/hooks/pre-commit")
			if _, err := os.Lstat(filepath.Join(dir, ".git/hooks/pre-commit")); err == nil {
				harness.Breach(t, "a hook was written in a project that is called %q", name)
			}
		})
	}
}

// TestExec_InsideOtherSandboxes starts exec where others have taken something
// from it.
func TestExec_InsideOtherSandboxes(t *testing.T) {
	t.Parallel()
	harness.RequirePrograms(t, "setpriv", "unshare", "bwrap")
	for _, around := range []string{
		"setpriv --no-new-privs", "unshare -r", "unshare -rn", "unshare -rpf --mount-proc", "bwrap --dev-bind / /",
		"bwrap --ro-bind / / --bind $HOME $HOME --bind $PWD $PWD --dev /dev --proc /proc --unshare-all",
	} {
		t.Run(around, func(t *testing.T) {
			t.Parallel()
			if around != "setpriv --no-new-privs" && !harness.Namespaces(t) {
				harness.Skip(t, "user_namespaces", "the sandbox around it is one")
			}
			w := harness.NewWorldOutsideDefaults(t)
			harness.Write(t, w.UserSettings(), harness.Defaults(nil))
			r := waysIn(t, w)["by exec"]
			for _, test := range []struct{ script, want string }{
				{around + ` echo ok`, "ok\n"}, // the control
				{around + ` RUN sh -c 'echo ok >f; cat f; (echo evil >"$HOME/.bashrc") 2>/dev/null; exit 7'
					echo $?; cat "$HOME/.bashrc"`, "ok\n7\nmine\n"},
			} {
				harness.Write(t, filepath.Join(w.Home, ".bashrc"), "mine\n")
				out, err := r.shell(test.script).Output()
				if err != nil || string(out) != test.want {
					t.Errorf("%s: %v: %s", test.script, err, out)
				}
			}
		})
	}
}

// TestExec_InHomesOfManyKinds reads what usual files in homes lead to.
func TestExec_InHomesOfManyKinds(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		programs string
		settings harness.Sandbox
		home     map[string]string // "-> TARGET" is a link
		line     string
		want     string
	}{
		"rustup's line in a profile": {
			programs: "sh", home: map[string]string{
				".cargo/env": "export FROM_ENV=1\n", ".profile": `. "$HOME/.cargo/env"` + "\n",
			},
			line: `RUN sh -lc 'echo ran $FROM_ENV'`, want: "ran 1\n",
		},
		"a pattern in ssh's settings": {
			programs: "ssh", settings: harness.Sandbox{"toolchains": []string{"ssh"}}, home: map[string]string{
				".ssh/config": "Include ~/.ssh/config.d/*\n", ".ssh/config.d/work": "Host work\n  HostName 10.9.9.9\n",
			},
			line: `RUN ssh -F ~/.ssh/config -G work | grep '^hostname'`, want: "hostname 10.9.9.9\n",
		},
		"zsh with compinit": {
			programs: "zsh", home: map[string]string{".zshrc": "autoload -Uz compinit; compinit\n"},
			line: `RUN zsh -ic 'echo hi' 2>&1 </dev/null | grep -v 'job control'`, want: "hi\n",
		},
		"dotfiles behind links": {
			programs: "git", home: map[string]string{
				"dotfiles/gitconfig": "[user]\n\tname = Linked\n\temail = l@example.org\n",
				"dotfiles/bashrc":    "export FROM_RC=1\n",
				".gitconfig":         "-> dotfiles/gitconfig", ".bashrc": "-> dotfiles/bashrc",
			},
			line: `git init -q; RUN git commit -qm x --allow-empty; git log -1 --format=%an
				RUN bash -ic 'echo $FROM_RC' 2>/dev/null`, want: "Linked\n1\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			harness.RequirePrograms(t, test.programs)
			w := harness.NewWorldOutsideDefaults(t)
			harness.Write(t, w.UserSettings(), harness.Defaults(test.settings))
			for file, text := range test.home {
				path := filepath.Join(w.Home, file)
				if target, is := strings.CutPrefix(text, "-> "); is {
					harness.Must(t, os.Symlink(target, path))
					continue
				}
				harness.Write(t, path, text)
			}
			for way, r := range waysIn(t, w) {
				command, said := r.shell(test.line), bytes.Buffer{}
				command.Stderr = &said
				if out, err := command.Output(); err != nil || string(out) != test.want {
					t.Errorf("%s: %v: %q, %s", way, err, out, said.String())
				}
			}
		})
	}
}
