//go:build linux

package attack

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// Runs rm -rf on a directory outside that the test has made. Nothing grants
// removing there; without a sandbox the directory is removed.
func TestRmRfIsBlockedOutsideAndEffectiveUnsandboxed(t *testing.T) {
	t.Parallel()
	harness.Require(t, "filesystem")
	try := func(settings string) (s *scene, kept bool) {
		s = newScene(t)
		harness.Write(t, s.OutsidePath("target/a"), "a")
		harness.Write(t, s.OutsidePath("target/deep/b"), "b")
		removeTree(t, s.Start(settings), s, s.OutsidePath("target"))
		return s, harness.Read(t, s.OutsidePath("target/a")) == "a" && harness.Read(t,
			s.OutsidePath("target/deep/b")) == "b"
	}
	if s, _ := try(harness.Off()); exists(s.OutsidePath("target")) {
		t.Error("control: without a sandbox the directory must be gone")
	}
	if _, kept := try(""); !kept {
		harness.Breach(t, "THE ATTACK WORKS: files are gone")
	}
}

// removeTree runs rm -rf as a tool, after making sure that the test has made
// the tree.
func removeTree(t testing.TB, e *harness.Editor, s *scene, tree string) {
	t.Helper()
	root := filepath.Dir(s.Project)
	if rel, err := filepath.Rel(root, tree); err != nil || !filepath.IsLocal(rel) || strings.Count(root, "/") < 2 ||
		!exists(filepath.Join(root, "project", "victim")) {
		t.Fatalf("%s is not a tree of this test", tree)
	}
	e.Spawn(protocol.SpawnParams{
		Kind: protocol.Tool, Command: "/bin/rm", Args: []string{
			"-rf", "--one-file-system", "--",
			tree,
		}, Cwd: "/", ProjectDir: s.Project,
	}).Exit()
}

// Writes inside the project, sandboxed and not. The sandbox must not restrict
// too much.
func TestWritesInsideTheProjectSucceed(t *testing.T) {
	t.Parallel()
	for _, settings := range []string{"", harness.Off()} {
		s := newScene(t)
		if output, status := s.Start(settings).Tool("echo hello > file && mkdir -p d/e && mv file d/e/"); status != 0 {
			t.Errorf("status %d:\n%s", status, output)
		}
		if got := harness.Read(t, s.ProjectPath("d/e/file")); got != "hello\n" {
			t.Errorf("got %q", got)
		}
	}
}

// Copies a secret from outside into the project. Nothing grants reading there.
func TestReadsOutsideTheProjectAreBlocked(t *testing.T) {
	t.Parallel()
	harness.Require(t, "filesystem")
	try := func(settings string) string {
		s := newScene(t)
		secretOutside(s)
		s.Start(settings).Tool("cat '" + s.OutsidePath("secret") + "' > stolen")
		return harness.Read(t, s.ProjectPath("stolen"))
	}
	if got := try(harness.Off()); got != secretText {
		t.Errorf("control: without a sandbox it must work, got %q", got)
	}
	if got := try(""); got != "" {
		harness.Breach(t, "THE ATTACK WORKS: %q", got)
	}
}

// Writes to a directory outside, without and with a grant of it in
// additional_read_write_paths.
func TestAdditionalReadWritePathsGrantAccess(t *testing.T) {
	t.Parallel()
	harness.Require(t, "filesystem")
	try := func(grants func(*scene) harness.Sandbox) (wrote bool) {
		s := newScene(t)
		s.Start(harness.Settings(grants(s))).Tool("echo x > '" + s.OutsidePath("file") + "'")
		return harness.Read(t, s.OutsidePath("file")) == "x\n"
	}
	if try(func(*scene) harness.Sandbox { return nil }) {
		harness.Breach(t, "THE ATTACK WORKS: the write succeeds without the grant")
	}
	if !try(func(s *scene) harness.Sandbox {
		return harness.Sandbox{"additional_read_write_paths": []string{s.Outside}}
	}) {
		t.Error("the write fails with the grant")
	}
}

// Reads and overwrites a file in a directory that additional_read_only_paths
// grants. Reading works, writing does not, and writing works without a sandbox.
func TestAdditionalReadOnlyPathsAllowReadAndBlockWrite(t *testing.T) {
	t.Parallel()
	harness.Require(t, "filesystem")
	try := func(settings func(*scene) string) (read, left string) {
		s := newScene(t)
		secretOutside(s)
		s.Start(settings(s)).Tool("cat '" + s.OutsidePath("secret") + "' > copy; echo overwritten > '" +
			s.OutsidePath("secret") +
			"'")
		return harness.Read(t, s.ProjectPath("copy")), harness.Read(t, s.OutsidePath("secret"))
	}
	if _, left := try(func(*scene) string { return harness.Off() }); left != "overwritten\n" {
		t.Errorf("control: without a sandbox the write must succeed, got %q", left)
	}
	read, left := try(func(s *scene) string { return harness.Settings(readOnlyOutside(s)) })
	if read != secretText {
		t.Errorf("the read fails: %q", read)
	}
	if left != secretText {
		harness.Breach(t, "THE ATTACK WORKS: %q", left)
	}
}

// Reads HOME, which is allowed, and AWS_SECRET, which is not.
func TestEnvironmentVariablesAreFiltered(t *testing.T) {
	t.Parallel()
	try := func(settings string) string {
		s := newScene(t)
		e := harness.Start(t, s.World, harness.Options{Settings: settings, Env: []string{"AWS_SECRET=" + secretText}})
		output, _ := e.Tool("env")
		if !strings.Contains(output, "HOME="+s.Home) {
			t.Errorf("HOME is missing:\n%s", output)
		}
		return output
	}
	if output := try(harness.Off()); !leaked(nil, output) {
		t.Errorf("control: without a sandbox the variable must arrive:\n%s", output)
	}
	if output := try(""); leaked(nil, output) {
		harness.Breach(t, "THE ATTACK WORKS:\n%s", output)
	}
}

// Runs a plain echo as a terminal's command with the default settings, whatever
// this machine can enforce: it runs, and the reply says what is enforced.
func TestASandboxedEchoRunsOnEveryMachine(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	session := s.Start(harness.Defaults(nil)).Spawn(protocol.SpawnParams{Command: "echo hello"})
	if exit := session.Exit(); exit.ExitCode == nil || *exit.ExitCode != 0 ||
		!strings.Contains(session.Output(), "hello\n") {
		t.Errorf("exit %+v:\n%s", exit, session.Output())
	}
	if status := session.Sandbox.Status; session.Sandbox.Applied == (status == protocol.SandboxNone) ||
		status == protocol.SandboxOff {
		t.Errorf("applied %v with status %q", session.Sandbox.Applied, status)
	}
}
