//go:build linux

package protected

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/client"
	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// review renders the findings of a closed session, paths relative to the
// project.
func (s *scene) review(end protocol.CloseResult) []string {
	var list []string
	for _, f := range end.Review {
		if f.Why == "" {
			s.T.Errorf("%+v has no reason", f)
		}
		list = append(list, f.Change+" "+strings.TrimPrefix(f.Path, s.Project+"/"))
	}
	return list
}

func has(t *testing.T, what string, list []string, want ...string) {
	t.Helper()
	for _, one := range want {
		if !slices.Contains(list, one) {
			t.Errorf("%s: %q is missing in %q", what, one, list)
		}
	}
}

// A program outside creates protected paths that do not exist while a session
// runs. Nothing was mounted on them, so they are reported, at once and when the
// session closes. The session itself is refused.
func TestCreatedProtectedPathsAreReported(t *testing.T) {
	t.Parallel()
	harness.Require(t, "filesystem")
	for _, machine := range harness.Machines(t) {
		t.Run(machine.Name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t)
			s.repository(s.Project)
			e := s.start(harness.Defaults(nil), machine)
			session := e.Spawn(protocol.SpawnParams{
				Kind: protocol.Terminal, Shell: &protocol.Shell{Program: "/bin/sh"},
			})
			for _, name := range []string{".envrc", ".git/commondir", ".vscode/tasks.json", "a.code-workspace"} {
				harness.Write(t, s.ProjectPath(name), "evil")
			}
			session.Type("echo evil >.mcp.json; mkdir -p .github/workflows; echo x " +
				">.github/workflows/ci.yml; " +
				`printf '{"scripts":{"postinstall":"evil"}}' >package.json; git init -q sub; echo do''ne` + "\n")
			session.Await("done")
			want := []string{
				"protected_created .envrc", "protected_created .vscode", "protected_created .git/commondir",
				"protected_created a.code-workspace",
			}
			harness.Eventually(t, "it is reported", func() bool { return len(s.reports(e)) >= len(want) })
			has(t, "alarms", s.reports(e), want...)
			end := session.Close(0)
			has(t, "review", s.review(end), "created .envrc", "created .git/commondir",
				"created .github/workflows/ci.yml", "created package.json", "created sub/.git")
			if _, err := os.Stat(s.ProjectPath(".mcp.json")); err == nil {
				harness.Breach(t, "the session created .mcp.json")
			}
			p := session.Sandbox.Protections["protected_paths"]
			status := protocol.Degraded
			if machine.Namespaces {
				status = protocol.Enforced
			}
			if p.Status != status || machine.Namespaces && !strings.Contains(p.Detail, `.envrc"`) {
				t.Errorf("the reply promises more, or less: %+v", p)
			}
			e.Log.Await(t, `check this file.*package\.json`)
		})
	}
}

// A program outside replaces git's configuration, as "git config" does, under a
// running session. The kernel then no longer protects the new file, so that the
// session is flagged.
func TestAReplacementFromOutsideIsReported(t *testing.T) {
	t.Parallel()
	harness.Require(t, "protected_paths")
	s := newScene(t)
	s.repository(s.Project)
	e := s.start(harness.Defaults(nil), harness.Machine{})
	session := e.Spawn(protocol.SpawnParams{Shell: &protocol.Shell{Program: "/bin/sh"}})
	session.Type("echo in >>.git/config; echo tri''ed\n")
	session.Await(`Read-only file system(?s:.*)tried`)
	s.git(s.Project, "config", "user.nick", "me")
	harness.Eventually(t, "it is reported", func() bool {
		return slices.Contains(s.reports(e), "protected_replaced .git/config")
	})
	if end := session.Close(0); !slices.Contains(s.review(end), "changed .git/config") {
		t.Errorf("review: %q", s.review(end))
	}
	// In the next session it is protected again.
	if _, output, status, _ := e.run("echo in >>.git/config"); status == 0 {
		t.Errorf("status %d: %s", status, output)
	}
}

// A refused change by git is reported with its path. git itself only says that
// the file is busy.
func TestARefusedChangeOfConfigurationIsReported(t *testing.T) {
	t.Parallel()
	harness.Require(t, "protected_paths")
	s := newScene(t)
	s.repository(s.Project)
	e := s.start(harness.Defaults(nil), harness.Machine{})
	_, output, status, end := e.run("git remote add origin /nowhere")
	if status == 0 || !strings.Contains(output, "could not") {
		t.Errorf("status %d: %s", status, output)
	}
	harness.Eventually(t, "it is reported", func() bool {
		return slices.Contains(s.reports(e),
			"protected_write .git/config")
	})
	if len(end.Review) > 0 {
		t.Errorf("review: %q", s.review(end))
	}
}

// Without namespaces the protected paths can be written. A change is reported.
// If the settings require the protection, no session starts.
func TestWithoutNamespacesChangesAreReportedOrNothingStarts(t *testing.T) {
	t.Parallel()
	harness.Require(t, "filesystem")
	without := harness.Machine{Wrap: harness.WithoutNamespaces(t)}
	s := newScene(t)
	s.repository(s.Project)
	harness.Write(t, s.ProjectPath(".vscode/settings.json"), "{}")
	e := s.start(harness.Defaults(nil), without)
	reply, output, status, end := e.run(
		`echo evil >.git/hooks/pre-commit; echo >>.git/config; echo evil >.vscode/tasks.json; mv .git .g; mv .g .git`)
	p := reply.Sandbox.Protections["protected_paths"]
	if status != 0 || p.Status != protocol.Degraded || p.Mechanism != "tripwire" || p.Fix == "" {
		t.Errorf("status %d, %+v: %s", status, p, output)
	}
	want := []string{
		"protected_written .git/hooks", "protected_written .git/config", "protected_written .vscode",
		"protected_replaced .git/config",
	}
	harness.Eventually(t, "it is reported", func() bool { return len(s.reports(e)) >= len(want) })
	has(t, "alarms", s.reports(e), want...)
	has(t, "review", s.review(end), "created .git/hooks/pre-commit", "changed .git/config",
		"created .vscode/tasks.json")

	for kind, settings := range map[protocol.Kind]harness.Sandbox{
		protocol.Tool: {"on_unavailable": "refuse"}, protocol.Terminal: {"on_unavailable": "refuse"},
	} {
		e := s.start(harness.Defaults(settings), without)
		_, err := harness.Try(e.Editor, protocol.Spawn,
			protocol.SpawnParams{Kind: kind, Cwd: s.Project, Command: "echo ran >ran"})
		var refused *client.Error
		if !errors.As(err, &refused) || refused.Code != protocol.CodeSandboxUnavailable ||
			!strings.Contains(refused.Data.Hint, "on_unavailable") {
			t.Errorf("%s: %v", kind, err)
		}
		if _, err := os.Stat(s.ProjectPath("ran")); err == nil {
			harness.Breach(t, "%s: the refused command ran", kind)
		}
		// The defaults grant the temporary directory, where the tests' sidecar lies,
		// and its own program is always protected.
		settings["protected_paths"] = []string{"!*"}
		e = s.start(harness.Settings(settings), without)
		if _, output, status, _ := e.run("true"); status != 0 {
			t.Errorf("%s, where nothing is protected: status %d: %s", kind, status, output)
		}
	}
}

// Nothing can be mounted on a symlink, and its directory is writable: it can be
// removed, which is reported, and the reply says so. Nothing comes in its place.
func TestSymlinksCanOnlyBeRemoved(t *testing.T) {
	t.Parallel()
	harness.Require(t, "protected_paths")
	s := newScene(t)
	s.repository(s.Project)
	if err := os.Symlink("elsewhere", s.ProjectPath(".vscode")); err != nil {
		t.Fatal(err)
	}
	e := s.start(harness.Defaults(nil), harness.Machine{})
	reply, output, status, _ := e.run("rm .vscode; mkdir .vscode")
	p := reply.Sandbox.Protections["protected_paths"]
	if status == 0 || p.Status != protocol.Degraded || !strings.Contains(p.Detail, "symlinks") ||
		!strings.Contains(p.Detail, `.vscode"`) {
		t.Errorf("status %d, %+v: %s", status, p, output)
	}
	harness.Eventually(t, "it is reported", func() bool {
		return slices.Contains(s.reports(e),
			"protected_replaced .vscode")
	})
}

// A caller of exec can pass down a directory or a protected file that was
// opened outside of the session's mounts.
func TestStreamsDoNotLeadPastTheMounts(t *testing.T) {
	t.Parallel()
	harness.Require(t, "protected_paths")
	for name, test := range map[string]struct {
		stdin, line string
		flags       int
		runs        bool
	}{
		"a directory":                   {".", `echo evil >/proc/self/fd/0/.git/hooks/pre-commit`, os.O_RDONLY, true},
		"a protected directory":         {".git/hooks", `echo evil >/proc/self/fd/0/pre-commit`, os.O_RDONLY, true},
		"a protected file":              {".git/config", `cat >copy; echo evil >/proc/self/fd/0`, os.O_RDONLY, true},
		"a protected file, for writing": {".git/config", `echo ran >ran`, os.O_RDWR, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			try := func(settings string) (harm bool, output string, err error) {
				s := newScene(t)
				s.repository(s.Project)
				before := harness.Read(t, s.ProjectPath(".git/config"))
				harness.Write(t, s.UserSettings(), settings)
				stdin, err := os.OpenFile(s.ProjectPath(test.stdin), test.flags, 0)
				if err != nil {
					t.Fatal(err)
				}
				defer stdin.Close()
				command := exec.Command(harness.Binary(t), "exec", "--", "sh", "-c", test.line)
				command.Dir, command.Env, command.Stdin = s.Project, harness.Environ(s.World), stdin
				out, err := command.CombinedOutput()
				_, hook := os.Stat(s.ProjectPath(".git/hooks/pre-commit"))
				_, ran := os.Stat(s.ProjectPath("ran"))
				if copied := harness.Read(t, s.ProjectPath("copy")); strings.Contains(test.line, "copy") &&
					copied != before {
					t.Errorf("the file cannot be read: %q", copied)
				}
				return hook == nil || ran == nil || harness.Read(t, s.ProjectPath(".git/config")) != before,
					string(out), err
			}
			if harm, output, err := try(harness.Off()); !harm {
				t.Fatalf("control: %v: %s", err, output)
			}
			harm, output, err := try(harness.Defaults(nil))
			output = strings.Join(strings.Fields(output), " ") // unfolded
			if harm || err == nil || !strings.Contains(output, "ead-only file system") {
				harness.Breach(t, "harm %t, %v: %s", harm, err, output)
			}
			if strings.Contains(output, "confine") == test.runs {
				t.Errorf("runs: %s", output)
			}
		})
	}
}

// A session whose working directory lies in a protected directory works there
// through the session's mounts.
func TestTheWorkingDirectoryIsMountedToo(t *testing.T) {
	t.Parallel()
	harness.Require(t, "protected_paths")
	s := newScene(t)
	s.repository(s.Project)
	e := s.start(harness.Defaults(nil), harness.Machine{})
	session := e.Spawn(protocol.SpawnParams{
		Kind: protocol.Tool, Cwd: s.ProjectPath(
			".git/hooks"), ProjectDir: s.Project, Command: "pwd -P; echo evil >pre-commit; echo evil >../../fine",
	})
	session.Exit()
	if output := session.Output(); !strings.HasPrefix(output, s.ProjectPath(".git/hooks")) ||
		strings.Count(output, "Read-only") != 1 {
		t.Error(output)
	}
	if _, err := os.Stat(filepath.Join(s.Project, "fine")); err != nil {
		t.Error(err)
	}
}
