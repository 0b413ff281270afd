//go:build linux

package agents

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// A set for an agent opens its sign-in and its state, and no agent outside finds
// what a session has written there: hooks, servers, instructions. The control is
// the same without a sandbox.
func TestSets_StateNeverReachesTheAgentOutside(t *testing.T) {
	t.Parallel()
	harness.RequireSandbox(t)
	for _, machine := range harness.Machines(t) {
		for _, caches := range []string{"private", "shared"} {
			t.Run(machine.Name+", caches "+caches, func(t *testing.T) {
				t.Parallel()
				w := harness.NewWorldOutsideDefaults(t)
				hooks, token, servers := w.HomePath(".claude/settings.json"), w.HomePath(".claude/.credentials.json"),
					w.HomePath(".claude.json")
				for _, path := range []string{hooks, token, servers} {
					harness.Write(t, path, "real\n")
				}
				run := func(settings, line string) (output string, err error) {
					harness.Write(t, w.UserSettings(), settings)
					command := exec.Command(harness.Binary(t), "exec", "--kind", "tool", "--", "sh", "-c", line)
					command.Dir, command.Env = w.Project, harness.Environ(w)
					if machine.Wrap != nil {
						machine.Wrap(command)
					}
					text, err := command.Output()
					return string(text), err
				}
				set := harness.Defaults(harness.Sandbox{"toolchains": []string{"claude"}, "toolchain_caches": caches})
				const plant = `echo hook >~/.claude/settings.json; echo new >~/.claude/CLAUDE.md; echo server >~/.claude.json; ` +
					`cat ~/.claude/settings.json`

				if got, err := run(harness.Defaults(nil), "cat ~/.claude/.credentials.json"); err == nil {
					t.Errorf("without the set a session reads the sign-in: %s", got)
				}
				if got, err := run(set, "cat ~/.claude/.credentials.json ~/.claude.json"); err != nil ||
					got != "real\nreal\n" {
					t.Errorf("with the set: %q, %v", got, err)
				}
				got, _ := run(set, plant)
				if want := map[bool]string{true: "hook\n", false: "real\n"}[machine.Namespaces]; got != want {
					t.Errorf("the session sees %q of what it wrote, want %q", got, want)
				}
				if harness.Read(t, hooks)+harness.Read(t, servers) != "real\nreal\n" {
					t.Error("the agent outside finds what a session has written")
				}
				if _, err := os.Stat(w.HomePath(".claude/CLAUDE.md")); err == nil {
					t.Error("the agent outside finds new instructions")
				}
				if machine.Namespaces { // a wider grant opens just what is around the state
					wide := harness.Defaults(harness.Sandbox{
						"toolchains": []string{"claude"}, "toolchain_caches": caches,
						"additional_read_write_paths": []string{w.Home},
					})
					got, _ := run(wide, `echo around >~/around; `+plant)
					if got != "hook\n" || harness.Read(t, w.HomePath("around")) != "around\n" {
						t.Errorf("with the home directory granted, the session sees %q of what it wrote", got)
					}
					if harness.Read(t, hooks)+harness.Read(t, servers) != "real\nreal\n" {
						t.Error("with the home directory granted, the agent outside finds what a session has written")
					}
				}
				if _, err := run(harness.Off(), plant); err != nil {
					t.Fatal(err)
				}
				if harness.Read(t, hooks)+harness.Read(t, servers) != "hook\nserver\n" {
					t.Error("the control wrote nothing")
				}
			})
		}
	}
}

// Nothing suggests an agent's sign-in to another program.
func TestSets_AreNotSuggested(t *testing.T) {
	t.Parallel()
	harness.RequireSandbox(t)
	w := harness.NewWorldOutsideDefaults(t)
	harness.Write(t, w.HomePath(".codex/auth.json"), "token\n")
	harness.Write(t, w.UserSettings(), harness.Defaults(nil))
	command := exec.Command(harness.Binary(t), "explain", "read", filepath.Join(w.Home, ".codex/auth.json"))
	command.Dir, command.Env = w.Project, harness.Environ(w)
	text, err := command.CombinedOutput()
	if err != nil || strings.Contains(string(text), "toolchains") || !strings.HasPrefix(string(text), "refused") {
		t.Errorf("%v: %s", err, text)
	}
	command = exec.Command(harness.Binary(t), "init", "--yes")
	command.Dir, command.Env = w.Project, harness.Environ(w)
	harness.Must(t, os.Remove(w.UserSettings()))
	if text, err := command.CombinedOutput(); strings.Contains(harness.Read(t, w.UserSettings()), "codex") {
		t.Errorf("init adds it: %v: %s", err, text)
	}
}
