//go:build linux

package temporary

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }

// start starts an editor with the default settings and these keys.
func start(t *testing.T, w *harness.World, keys harness.Sandbox) *harness.Editor {
	t.Helper()
	return harness.Start(t, w, harness.Options{Settings: harness.Defaults(keys)})
}

// must runs a command line as a tool, which must succeed.
func must(t *testing.T, e *harness.Editor, line string) string {
	t.Helper()
	output, status := e.Tool(line)
	if status != 0 {
		t.Fatalf("%s: status %d:\n%s", line, status, output)
	}
	return output
}

// ours lists the sidecar's directories for temporary files that hold a file of
// this name.
func ours(t *testing.T, name string) []string {
	t.Helper()
	var found []string
	for _, dir := range []string{"/tmp", "/var/tmp", "/dev/shm"} {
		list, err := filepath.Glob(dir + "/sandbox-sidecar-*/files/" + name)
		harness.Must(t, err)
		found = append(found, list...)
	}
	return found
}

// unique is a name that no other test uses.
func unique(t *testing.T) string {
	return "sidecar-test-" + strconv.Itoa(os.Getpid()) + "-" + filepath.Base(t.TempDir()) + "-" +
		strings.ReplaceAll(t.Name(), "/", "-")
}

// The user's terminals and the agent's tools see the same files. Another project
// and programs outside do not. All are gone once the editor ends.
func TestTemporaryFiles_AreTheProjects(t *testing.T) {
	t.Parallel()
	harness.Require(t, "temporary_files")
	w, name := harness.NewWorld(t), unique(t)
	e := start(t, w, nil)
	for _, dir := range []string{"/tmp", "/var/tmp", "/dev/shm"} {
		must(t, e, "echo shared >"+dir+"/"+name)
	}
	if got := must(t, e, "cat /tmp/"+name+" /var/tmp/"+name+" /dev/shm/"+name); got != "shared\nshared\nshared\n" {
		t.Errorf("a second session reads %q", got)
	}
	if got := len(ours(t, name)); got != 3 {
		t.Errorf("%d files outside, want 3", got)
	}
	for _, dir := range []string{"/tmp/", "/var/tmp/", "/dev/shm/"} {
		if _, err := os.Lstat(dir + name); err == nil {
			t.Errorf("the file is seen outside in %s", dir)
		}
	}
	other := filepath.Join(filepath.Dir(w.Project), "other")
	harness.MakeDir(t, other)
	s, status := e.Run(protocol.SpawnParams{Command: "cat /tmp/" + name, Cwd: other, ProjectDir: other})
	if status == 0 {
		t.Errorf("another project reads %q", s.Output())
	}
	harness.Must(t, e.Quit(t.Context()))
	harness.Eventually(t, "the files are removed", func() bool { return len(ours(t, name)) == 0 })
}

// If the sidecar is killed, the watchdog removes the files, however the session
// has locked them.
func TestTemporaryFiles_GoWithAKilledSidecar(t *testing.T) {
	t.Parallel()
	harness.Require(t, "temporary_files")
	w, name := harness.NewWorld(t), unique(t)
	e := start(t, w, nil)
	must(t, e, "mkdir -p /tmp/"+name+"/a/b && touch /tmp/"+name+"/a/b/c && chmod 0 /tmp/"+name+"/a")
	if len(ours(t, name)) != 1 {
		t.Fatal("control: the directory is not found outside")
	}
	harness.Must(t, unix.Kill(e.Process(), unix.SIGKILL))
	harness.Eventually(t, "the files are removed", func() bool { return len(ours(t, name)) == 0 })
}

// A project in /tmp, a granted directory and an allowed socket there stay as
// they are; their neighbours are not seen.
func TestTemporaryFiles_GrantsThereStay(t *testing.T) {
	t.Parallel()
	harness.Require(t, "temporary_files", "unix_sockets")
	harness.RequirePrograms(t, "python3")
	dir := harness.ShortDir(t)
	w := &harness.World{Home: dir + "/home", Project: dir + "/p", Outside: dir + "/outside"}
	for _, made := range []string{w.Home, w.Project, w.Outside, dir + "/granted", dir + "/readable"} {
		harness.MakeDir(t, made)
	}
	harness.Write(t, dir+"/granted/file", "granted\n")
	harness.Write(t, dir+"/readable/file", "readable\n")
	harness.Write(t, w.Outside+"/secret", "secret\n")
	for _, name := range []string{"allowed", "refused"} {
		listener, err := net.Listen("unix", dir+"/"+name)
		harness.Must(t, err)
		t.Cleanup(func() { listener.Close() })
		go func() {
			for {
				conn, err := listener.Accept()
				if err != nil {
					return
				}
				_, _ = conn.Write([]byte("hello"))
				conn.Close()
			}
		}()
	}
	e := start(t, w, harness.Sandbox{
		"additional_read_write_paths": []string{dir + "/granted"},
		"additional_read_only_paths":  []string{dir + "/readable"},
		"allowed_unix_sockets":        []string{dir + "/allowed"},
	})
	must(t, e, "echo new >new && cat "+dir+"/granted/file "+dir+"/readable/file && echo more >>"+dir+"/granted/file")
	if harness.Read(t, w.Project+"/new") != "new\n" || harness.Read(t, dir+"/granted/file") != "granted\nmore\n" {
		t.Error("what is granted is not what is outside")
	}
	connect := func(name string) string {
		return `python3 -c 'import socket; s = socket.socket(1); s.connect("` + dir + "/" + name +
			`"); print(s.recv(9))'`
	}
	if got := must(t, e, connect("allowed")); !strings.Contains(got, "hello") {
		t.Errorf("the allowed socket: %s", got)
	}
	for _, line := range []string{
		connect("refused"), "cat " + w.Outside + "/secret", "echo x >" + dir + "/readable/file", "rm -r " +
			dir + "/readable", "mv " + dir + " " + dir + "-moved",
	} {
		if output, status := e.Tool(line); status == 0 {
			t.Errorf("%s works: %s", line, output)
		}
	}
	if harness.Read(t, dir+"/readable/file") != "readable\n" {
		t.Error("a read-only grant was changed")
	}
}

// What a session leaves in the place of a path that later sessions need stops
// those, with a message, and leads nowhere.
func TestTemporaryFiles_AnObstacleLeadsNowhere(t *testing.T) {
	t.Parallel()
	harness.Require(t, "temporary_files")
	dir := harness.ShortDir(t)
	w := &harness.World{Home: dir + "/h", Project: dir + "/a/p", Outside: dir + "/o"}
	for _, made := range []string{w.Home, w.Project, w.Outside} {
		harness.MakeDir(t, made)
	}
	e := start(t, w, harness.Sandbox{"protected_paths": []string{"!*"}, "on_unavailable": "refuse"})
	// Nothing pins the directories without protected paths.
	output, status := e.Tool("mv " + dir + "/a " + dir + "/b && ln -s " + w.Outside + " " + dir + "/a")
	if status != 0 {
		t.Fatalf("control: the way must be movable: %s", output)
	}
	_, err := harness.Try(e, protocol.Spawn, protocol.SpawnParams{
		Kind: protocol.Tool, Command: "touch here", Cwd: w.Project,
	})
	if err == nil || !strings.Contains(err.Error(), "has put something in its place") {
		t.Errorf("the next session: %v", err)
	}
	if entries, _ := os.ReadDir(w.Outside); len(entries) != 0 {
		t.Errorf("it led to %v", entries)
	}
}

// Programs find their directories: TMPDIR below /tmp, System V and POSIX shared
// memory, tmux, gcc.
func TestTemporaryFiles_ProgramsWork(t *testing.T) {
	t.Parallel()
	harness.Require(t, "temporary_files")
	harness.RequirePrograms(t, "python3", "gcc", "tmux", "strace", "gdb")
	w := harness.NewWorld(t)
	dir := "/tmp/" + unique(t)
	harness.MakeDir(t, dir)
	t.Cleanup(func() { os.RemoveAll(dir) })
	e := harness.Start(t, w, harness.Options{
		Settings: harness.Defaults(harness.Sandbox{"allowed_env_vars": []string{
			"PATH", "HOME", "TMPDIR", "LANG", "SHELL",
		}}),
		Env: []string{"TMPDIR=" + dir},
	})
	for name, line := range map[string]string{
		"mktemp":        `f=$(mktemp) && case $f in "` + dir + `"/*) rm "$f";; *) echo "$f"; exit 1;; esac`,
		"shared memory": `python3 -c 'from multiprocessing import shared_memory as s; m = s.SharedMemory(create=True, size=9); n = s.SharedMemory(m.name); n.buf[0] = 7; print(m.buf[0]); n.close(); m.close(); m.unlink()'`,
		"gcc":           `echo 'int main(void) { return 0; }' >a.c && gcc -o a a.c && ./a`,
		"tmux":          `tmux -f /dev/null new-session -d 'exec sleep 60' && tmux ls && tmux kill-server`,
		"strace":        `strace -o /tmp/trace true && grep -q execve /tmp/trace`,
		"gdb":           `gdb -batch -ex run true`,
	} {
		if output, status := e.Tool(line); status != 0 {
			t.Errorf("%s: status %d\n%s", name, status, output)
		}
	}
	if entries, _ := os.ReadDir(dir); len(entries) != 0 {
		t.Errorf("outside, TMPDIR has %v", entries)
	}
}

// The user may share them, and a project cannot.
func TestTemporaryFiles_CanBeShared(t *testing.T) {
	t.Parallel()
	harness.RequireSandbox(t)
	w, name := harness.NewWorld(t), unique(t)
	harness.Write(t, "/tmp/"+name, "outside\n")
	t.Cleanup(func() { os.Remove("/tmp/" + name) })
	if got := must(t, start(t, w, harness.Sandbox{"temporary_files": "shared"}), "cat /tmp/"+name); got != "outside\n" {
		t.Errorf("shared: %q", got)
	}
	harness.Require(t, "temporary_files")
	w = harness.NewWorld(t)
	harness.Write(t, w.Project+"/.zed/settings.json", `{"terminal": {"sandbox": {"temporary_files": "shared"}}}`)
	if output, status := start(t, w, nil).Tool("cat /tmp/" + name); status == 0 {
		t.Errorf("a project shares them: %s", output)
	}
}

// Without namespaces, TMPDIR names the project's own, and the reply says what
// that means.
func TestTemporaryFiles_WithoutNamespaces(t *testing.T) {
	t.Parallel()
	harness.RequireSandbox(t)
	for _, machine := range harness.Machines(t) {
		if machine.Namespaces {
			continue
		}
		w := harness.NewWorld(t)
		e := harness.Start(t, w, harness.Options{Settings: harness.Defaults(nil), Wrap: machine.Wrap})
		s, status := e.Run(protocol.SpawnParams{Command: `f=$(mktemp) && echo "$f" && echo own >"$f"`})
		if got := s.Output(); status != 0 || !strings.HasPrefix(got, "/tmp/sandbox-sidecar-") {
			t.Errorf("%s: status %d, %s", machine.Name, status, got)
		}
		p := s.Sandbox.Protections["temporary_files"]
		if p.Status != protocol.Degraded || !strings.Contains(p.Detail, "TMPDIR") {
			t.Errorf("%s: the reply says %+v", machine.Name, p)
		}
		if p := s.Sandbox.Protections["hidden_paths"]; p.Status == protocol.Enforced {
			t.Errorf("%s: the reply says %+v", machine.Name, p)
		}
	}
}

// Without namespaces, TMPDIR names a directory that the session may write, or
// stays what it was.
func TestTemporaryFiles_WithoutNamespacesAreWritable(t *testing.T) {
	t.Parallel()
	harness.RequireSandbox(t)
	for _, machine := range harness.Machines(t) {
		if machine.Namespaces {
			continue
		}
		for want, sandbox := range map[string]harness.Sandbox{
			"/var/tmp/sandbox-sidecar-": {
				"mode": "relaxed", "system_paths": map[string]any{"read_write": []string{"/var/tmp", "/dev/null"}},
			},
			"kept": {
				"additional_read_only_paths": []string{"/"}, "allowed_env_vars": []string{"TMPDIR", "PATH"},
				"system_paths": map[string]any{"read_write": []string{"/dev/null"}},
			},
		} {
			w := harness.NewWorldOutsideDefaults(t)
			own := w.Project + "/tmp"
			harness.MakeDir(t, own)
			e := harness.Start(t, w, harness.Options{Settings: harness.Defaults(sandbox), Wrap: machine.Wrap})
			s, status := e.Run(protocol.SpawnParams{
				Command: `f=$(mktemp) && echo "$f" && echo own >"$f"`, Env: map[string]string{"TMPDIR": own},
			})
			if want == "kept" {
				want = own
			}
			if got := s.Output(); status != 0 || !strings.HasPrefix(got, want) {
				t.Errorf("%s: status %d, want a file in %s: %s", machine.Name, status, want, got)
			}
		}
	}
}

// exec has its own, and removes them.
func TestTemporaryFiles_OfExec(t *testing.T) {
	t.Parallel()
	harness.Require(t, "temporary_files")
	w, name := harness.NewWorld(t), unique(t)
	harness.Write(t, w.UserSettings(), harness.Defaults(nil))
	command := exec.Command(harness.Binary(t), "exec", "--", "sh", "-c", "touch /tmp/"+name+" && ls /tmp/"+name)
	command.Dir, command.Env = w.Project, harness.Environ(w)
	if output, err := command.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	harness.Eventually(t, "the files are removed", func() bool { return len(ours(t, name)) == 0 })
}
