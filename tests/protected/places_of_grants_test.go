//go:build linux

package protected

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// mounted has a sidecar run where another file system is at a directory, which a
// script has filled. Without root that takes a user namespace, so the sidecar is
// root there.
func mounted(t *testing.T, dir, script string) func(*exec.Cmd) {
	t.Helper()
	args := []string{"unshare", "--mount"}
	if os.Geteuid() != 0 {
		args = append(args, "--map-root-user")
	}
	args = append(args, "/bin/sh", "-ec", `mount -t tmpfs none "$0"; cd "$0"; eval "$1"; cd /; shift; exec "$@"`)
	if out, err := exec.Command(args[0], append(args[1:], dir, "true", "true")...).CombinedOutput(); err != nil {
		harness.Skip(t, "mount_namespace", string(out))
	}
	return func(command *exec.Cmd) {
		command.Args = slices.Concat(args, []string{dir, script, command.Path}, command.Args[1:])
		command.Path = "/usr/bin/unshare"
	}
}

// A grant on another file system is treated as any other.
func TestAGrantOnAnotherFileSystem(t *testing.T) {
	t.Parallel()
	harness.Require(t, "filesystem")
	for _, protect := range []bool{true, false} {
		s := newScene(t)
		other := s.HomePath("other")
		harness.MakeDir(t, other)
		block := harness.Sandbox{"additional_read_write_paths": []string{other}}
		if !protect {
			block["protected_paths"] = []string{"!*"}
		}
		e := s.start(harness.Defaults(block), harness.Machine{Wrap: mounted(t, other,
			`mkdir -p .vscode .git/objects .git/refs .git/hooks; echo "ref: refs/heads/main" >.git/HEAD; echo >.git/config
echo "{}" >.vscode/tasks.json`)})
		session, _ := e.Run(protocol.SpawnParams{Command: "/bin/sh", Cwd: s.Project, Args: []string{"-c", `cd "$1"
echo planted >>.vscode/tasks.json; echo planted >.git/hooks/pre-commit; mkdir -p sub/deep; echo planted >sub/deep/.envrc
mkdir -p "$2/keep"; echo planted >"$2/keep/Makefile"; mv "$2/keep" built
cat .vscode/tasks.json .git/hooks/pre-commit sub/deep/.envrc built/Makefile; stat -c %d . "$2"`, "sh", other, s.Project}})
		end := session.Close(0)
		output := session.Output()
		lines := strings.Fields(output)
		if n := len(lines); n < 2 || lines[n-1] == lines[n-2] {
			t.Fatalf("it is the same file system: %s", output)
		}
		changed := strings.Count(output, "\nplanted") + strings.Count(output, "}planted")
		if !protect {
			if changed != 4 {
				t.Errorf("control: %d changes: %s", changed, output)
			}
			continue
		}
		if changed > 2 {
			harness.Breach(t, "%d changes: %s", changed, output)
		}
		for _, name := range []string{"sub/deep/.envrc", "built/Makefile"} {
			if !told(end, nil, other, filepath.Join(other, name)) {
				harness.Breach(t, "%s is not named: %+v: %s", name, end.Review, output)
			}
		}
	}
}

// A grant that vanishes while a session runs, and is something else then, opens
// nothing of that, and the session ends as usual.
func TestAGrantThatVanishes(t *testing.T) {
	t.Parallel()
	harness.Require(t, "filesystem")
	for name, replace := range map[string]func(s *scene, other string) error{
		"nothing":     func(*scene, string) error { return nil },
		"a symlink":   func(s *scene, other string) error { return os.Symlink(s.Outside, other) },
		"a file":      func(_ *scene, other string) error { return os.WriteFile(other, nil, 0o600) },
		"a directory": func(s *scene, other string) error { return os.Rename(s.OutsidePath("dir"), other) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t)
			other := s.HomePath("other")
			s.repository(other)
			harness.Write(t, s.OutsidePath("file"), "mine")
			harness.Write(t, s.OutsidePath("dir/file"), "mine")
			block := harness.Sandbox{"additional_read_write_paths": []string{other}}
			e := s.start(harness.Defaults(block), harness.Machine{})
			session := e.Spawn(protocol.SpawnParams{Command: "/bin/sh", Cwd: s.Project, Args: []string{
				"-c",
				`echo x >"$1/mine"; echo ready; read -r _; echo evil >"$1/file"; cat "$1/file"; echo done`, "sh", other,
			}})
			session.Await("ready")
			if harness.Read(t, filepath.Join(other, "mine")) != "x\n" {
				t.Errorf("control: the grant: %s", session.Output())
			}
			harness.Must(t, os.RemoveAll(other))
			harness.Must(t, replace(s, other))
			session.Type("\n")
			session.Await("done")
			session.Exit()
			session.Close(0)
			for _, path := range []string{
				s.OutsidePath("file"), s.OutsidePath("dir/file"), filepath.Join(other, "file"),
			} {
				if text, err := os.ReadFile(path); err == nil && string(text) != "mine" {
					harness.Breach(t, "%s: %q: %s", path, text, session.Output())
				}
			}
			if strings.Contains(session.Output(), "mine") {
				harness.Breach(t, "it is read: %s", session.Output())
			}
		})
	}
}
