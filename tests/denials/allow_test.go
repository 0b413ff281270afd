//go:build linux

package denials

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// command prepares a command of the sidecar under the settings that are there.
func (s *scene) command(args ...string) *exec.Cmd {
	command := exec.Command(harness.Binary(s.T), args...)
	command.Dir, command.Env = s.Project, harness.Environ(s.World)
	return command
}

// run runs it without a terminal, and returns what it prints and its status.
func (s *scene) run(args ...string) (printed string, status int) {
	s.T.Helper()
	command := s.command(args...)
	command.SysProcAttr = detached()
	return output(s.T, command)
}

// says runs it, and checks the status and what is printed.
func (s *scene) says(status int, text string, args ...string) {
	s.T.Helper()
	if out, got := s.run(args...); got != status || !strings.Contains(out, text) {
		s.T.Errorf("%q: status %d, want %d and %q:\n%s", args, got, status, text, out)
	}
}

// newAllowScene is one in which "exec" was refused to read a file, as number 1.
func newAllowScene(t *testing.T, settings string) (s *scene, file string) {
	t.Helper()
	s = newScene(t)
	harness.Write(t, s.UserSettings(), settings)
	file = s.OutsidePath("file")
	harness.Write(t, file, "the content\n")
	s.says(1, "(sandbox-sidecar allow 1)", "exec", "--", "cat", file)
	return s, file
}

// What was refused is allowed by one command, and refused again once that is
// taken back.
func TestAllow_OpensWhatWasRefused(t *testing.T) {
	t.Parallel()
	requireReports(t)
	s, file := newAllowScene(t, "// mine\n"+harness.Settings(nil))
	before := harness.Read(t, s.UserSettings())
	s.says(0, `read "`+file+`" by "cat"`, "allow")
	s.says(0, `"command": "sandbox-sidecar allow 1"`, "allow", "--json")
	s.says(0, "(sandbox-sidecar allow "+file+")", "explain", "read", file)
	s.says(0, "(sandbox-sidecar allow --write "+file+")", "explain", "write", file)
	if out, _ := s.run("explain", "write", filepath.Join(s.Home, ".bashrc")); strings.Contains(out, "allow --write") {
		t.Errorf("a step that allow refuses is named:\n%s", out)
	}
	s.says(2, "there is no terminal to ask on", "allow", "1")
	if harness.Read(t, s.UserSettings()) != before {
		t.Fatal("written without a yes")
	}
	s.says(0, "Allowed for sessions that start from now on", "allow", "1", "--yes")
	if text := harness.Read(t, s.UserSettings()); !strings.HasPrefix(text, "// mine\n") {
		t.Errorf("the comment is gone:\n%s", text)
	}
	s.says(0, "the content", "exec", "--", "cat", file)
	s.says(0, "allowed already", "allow", "1", "--yes")
	s.says(0, "allowed already", "allow", file, "--yes")
	s.says(0, "taken back", "allow", "--undo")
	if text := harness.Read(t, s.UserSettings()); text != before {
		t.Errorf("not as before:\n%s", text)
	}
	s.says(1, "(sandbox-sidecar allow 1)", "exec", "--", "cat", file)
	s.says(1, "no change is kept that could be taken back: what is allowed still, take out of", "allow", "--undo")
	s.says(1, "7 is no refusal of this project", "allow", "7")
	// By a path, and for the project.
	s.says(0, "Allowed", "allow", "--in-project", "--yes", file)
	s.says(0, "the content", "exec", "--", "cat", file)
	if text := harness.Read(t, s.UserSettings()); text != before {
		t.Errorf("the user's settings were written:\n%s", text)
	}
}

// What may be written needs no entry for reading, of which each session would be
// warned.
func TestAllow_WritingReplacesReading(t *testing.T) {
	t.Parallel()
	harness.Require(t, "filesystem")
	s := newScene(t)
	harness.Write(t, s.UserSettings(), harness.Settings(nil))
	notes := s.OutsidePath("notes")
	harness.Must(t, os.Mkdir(notes, 0o755))
	s.says(0, "Allowed", "allow", "--yes", notes)
	read := harness.Read(t, s.UserSettings())
	out, status := s.run("allow", "--yes", "--write", notes)
	if status != 0 || !strings.Contains(out, "- ") || !strings.Contains(out, "+ ") {
		t.Errorf("status %d: %s", status, out)
	}
	if text := harness.Read(t, s.UserSettings()); strings.Count(text, notes) != 1 {
		t.Errorf("written: %s", text)
	}
	if out, status := s.run("exec", "--", "touch", filepath.Join(notes, "x")); status != 0 || out != "" {
		t.Errorf("status %d: %s", status, out)
	}
	s.says(0, "taken back", "allow", "--undo")
	if harness.Read(t, s.UserSettings()) != read {
		t.Errorf("not as before: %s", harness.Read(t, s.UserSettings()))
	}
}

// Sessions of an editor are listed, too, while they run.
func TestAllow_ListsWhatRunningSessionsWereRefused(t *testing.T) {
	t.Parallel()
	s := newObservedScene(t)
	e := s.start(harness.Settings(nil), nil)
	file := s.OutsidePath("file")
	harness.Write(t, file, "")
	session := e.Spawn(protocol.SpawnParams{Command: "sh", Args: []string{"-c", "cat " + file + "; read line"}})
	harness.Eventually(t, "the refusal is listed", func() bool {
		out, _ := s.run("allow")
		return strings.Contains(out, `read "`+file+`" by "cat"`)
	})
	s.says(0, `keep their policy without it: "sh" (process `, "allow", "--yes", file)
	session.Close(0)
}

func TestAllow_AsksOnTheTerminal(t *testing.T) {
	t.Parallel()
	requireReports(t)
	for typed, writes := range map[string]bool{"yes\n": true, "y\n": false, "\n": false} {
		s, file := newAllowScene(t, harness.Settings(nil))
		terminal := harness.StartTerminal(t, s.command("allow", "1"))
		terminal.Await("Type yes, or press Enter to leave it: ")
		terminal.Type(typed)
		status := terminal.Status()
		written := strings.Contains(harness.Read(t, s.UserSettings()), file)
		if written != writes || (status == 0) != writes {
			t.Errorf("typed %q: status %d, written %t:\n%s", typed, status, written, terminal.Screen)
		}
	}
	// A service of this machine is outside of the sandbox: no --yes is enough.
	s, _ := newAllowScene(t, harness.Settings(harness.Sandbox{"allow_network": false}))
	const service = "localhost:34567"
	before := harness.Read(t, s.UserSettings())
	s.says(1, "needs your yes on a terminal", "allow", "--yes", service)
	if out, status := s.run("allow", service); status != 1 || !strings.Contains(out, "needs your yes on a terminal") ||
		strings.Contains(out, "--yes") {
		t.Errorf("without a terminal: status %d:\n%s", status, out)
	}
	if harness.Read(t, s.UserSettings()) != before {
		t.Error("--yes has opened a service of this machine")
	}
	terminal := harness.StartTerminal(t, s.command("allow", service))
	terminal.Await("Type yes, or press Enter to leave it: ")
	terminal.Type("yes\n")
	if status := terminal.Status(); status != 0 || !strings.Contains(harness.Read(t, s.UserSettings()), service) {
		t.Errorf("control: status %d:\n%s", status, terminal.Screen)
	}
}

func TestAllow_RefusesWhatNoAdviceNames(t *testing.T) {
	t.Parallel()
	requireReports(t)
	s, file := newAllowScene(t, harness.Settings(nil))
	key := filepath.Join(s.Home, ".ssh", "id")
	harness.Write(t, key, "")
	before := harness.Read(t, s.UserSettings())
	s.says(1, "SSH keys are stored there", "allow", "--yes", key)
	s.says(1, "not allowed", "allow", "--yes", "--write", filepath.Join(s.Home, ".bashrc"))
	s.says(1, "not allowed", "allow", "--yes", s.OutsidePath("gone"))
	harness.Must(t, os.Remove(file))
	s.says(1, "not allowed", "allow", "--yes", "1")
	if harness.Read(t, s.UserSettings()) != before {
		t.Errorf("written:\n%s", harness.Read(t, s.UserSettings()))
	}
	harness.Write(t, file, "")
	s.says(0, "Allowed", "allow", "--yes", "1") // the control
}

// Inside a session nothing is written, whoever asks.
func TestAllow_InsideASessionWritesNothing(t *testing.T) {
	t.Parallel()
	requireReports(t)
	s, file := newAllowScene(t, harness.Settings(nil))
	copied := filepath.Join(s.Project, "sidecar")
	harness.Must(t, exec.Command("cp", harness.Binary(t), copied).Run())
	before := harness.Read(t, s.UserSettings())
	s.says(1, "in a terminal outside: sandbox-sidecar allow 1", "exec", "--", copied, "allow", "1", "--yes")
	s.says(1, "in a terminal outside: sandbox-sidecar allow --undo", "exec", "--", copied, "allow", "--undo")
	s.says(1, "in a terminal outside: sandbox-sidecar allow "+file, "exec", "--", copied, "allow", file)
	const outside = "inside a session nothing is listed; in a terminal outside: sandbox-sidecar allow"
	out, status := s.run("exec", "--", copied, "allow")
	if status != 1 || !strings.Contains(out, outside) || strings.Contains(out, "refused by the sandbox") {
		t.Errorf("status %d:\n%s", status, out)
	}
	if harness.Read(t, s.UserSettings()) != before {
		t.Error("written")
	}
	s.says(0, `read "`+file+`" by "cat"`, "allow")
	if out, _ := s.run("allow"); strings.Contains(out, `by "sidecar"`) {
		t.Errorf("the list inside was refused something:\n%s", out)
	}
	harness.Must(t, exec.Command("cp", harness.Binary(t), copied).Run())
	s.says(0, "Allowed", "allow", "1", "--yes") // the control
}

func TestAllow_SaysWhichSettingsAreInTheWay(t *testing.T) {
	t.Parallel()
	requireReports(t)
	s, _ := newAllowScene(t, harness.Settings(nil))
	good := harness.Read(t, s.UserSettings())
	project := filepath.Join(s.Project, ".zed", "settings.json")
	harness.Write(t, project, harness.Settings(harness.Sandbox{"additional_read_only_paths": []string{"/srv"}}))
	s.says(1, "would trust it all: see `sandbox-sidecar trust`, then again", "allow", "--in-project", "--yes", "1")
	harness.Must(t, os.Remove(project))

	harness.Write(t, s.UserSettings(), "{\n  \"terminal\": {\"sandbox\": {\"enabled\": 1}}\n}\n")
	s.says(1, "settings.json:2", "allow", "--yes", "1")
	harness.Write(t, s.UserSettings(), strings.Replace(good, "{", "{\"sandbox_of_tomorrow\": 1, ", 1))
	s.says(1, "nothing starts until it is fixed", "allow", "--yes", "1")

	harness.Write(t, s.UserSettings(), good)
	harness.Must(t, os.Chmod(s.UserSettings(), 0o400))
	s.says(1, "it is read-only, so nothing was written", "allow", "--yes", "1")
	harness.Must(t, os.Chmod(s.UserSettings(), 0o600))
	s.says(0, "Allowed", "allow", "--yes", "1") // the control
}

// Several shells at once lose nothing of each other, and write nothing twice.
func TestAllow_FromSeveralShellsAtOnce(t *testing.T) {
	t.Parallel()
	requireReports(t)
	s, file := newAllowScene(t, "// mine\n"+harness.Settings(nil))
	files := []string{file, file}
	for _, name := range []string{"a", "b", "c"} {
		files = append(files, s.OutsidePath(name))
		harness.Write(t, s.OutsidePath(name), "")
	}
	said := make([]string, len(files))
	var shells sync.WaitGroup
	for i, path := range files {
		command := s.command("allow", "--yes", path)
		command.SysProcAttr = detached()
		shells.Go(func() {
			out, err := command.CombinedOutput()
			if err != nil {
				said[i] = fmt.Sprintf("%v: %s", err, out)
			}
		})
	}
	shells.Wait()
	text := harness.Read(t, s.UserSettings())
	for i, path := range files {
		if said[i] != "" || strings.Count(text, `"`+path+`"`) != 1 {
			t.Errorf("%s: %s", path, said[i])
		}
	}
	if !strings.HasPrefix(text, "// mine\n") || t.Failed() {
		t.Errorf("written:\n%s", text)
	}
	s.says(0, "the content", "exec", "--", "cat", file)
}

// A URL names a host, and never a path.
func TestAllow_TakesHostsAsPeopleHaveThem(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	harness.Require(t, "network_hosts")
	before := harness.Settings(harness.Sandbox{"allow_network": false})
	for word, entry := range map[string]string{
		"example.com":                         "example.com:443",
		"https://example.com":                 "example.com:443",
		"https://example.com/x?y":             "example.com:443",
		"HTTPS://me:secret@example.com:8443/": "example.com:8443",
		"http://198.51.100.2":                 "198.51.100.2:80",
		"tcp://example.com:443":               "tcp://example.com:443",
		"tls://example.com:5000/":             "tls://example.com:5000",
		"https://[2001:db8::1]/":              "[2001:db8::1]:443",
		"*.example.com":                       "*.example.com",
		"*.example.com:443":                   "*.example.com:443",
	} {
		harness.Write(t, s.UserSettings(), before)
		out, status := s.run("allow", "--yes", word)
		if text := harness.Read(t, s.UserSettings()); status != 0 || !strings.Contains(text, `"`+entry+`"`) {
			t.Errorf("%s: status %d, want %s:\n%s\n%s", word, status, entry, out, text)
		}
		if path := strings.Contains(word, "/x"); path != strings.Contains(out, "all of \"example.com\"") {
			t.Errorf("%s: of the path it says:\n%s", word, out)
		}
		s.says(0, "allowed already", "allow", word)
	}
	harness.Write(t, s.UserSettings(), before)
	for word, text := range map[string]string{
		"https://": "is no URL of a host", "https:///etc": "is no URL of a host",
		"file:///etc/passwd": "is no URL of a host", "gopher://example.com": "is no URL of a host",
		"https://a b/": "not the name of a host", "*.com": "*.com",
	} {
		s.says(2, text, "allow", "--yes", word)
	}
	if harness.Read(t, s.UserSettings()) != before {
		t.Error("written")
	}
}

func TestAllow_WrongUsageIsSaid(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	harness.Write(t, s.UserSettings(), harness.Settings(nil))
	harness.Write(t, filepath.Join(s.Project, "a.example"), "")
	for text, args := range map[string][]string{
		"for a path: 2 is a refusal":            {"--write", "2"},
		`for a path: "example.com:443" is`:      {"example.com", "--execute"},
		"leave the other flags out":             {"--undo", "--in-project"},
		"are for what to allow: name it":        {"--yes"},
		`unexpected argument "2"`:               {"1", "2"},
		"what to allow is empty":                {""},
		"--undo takes the last change back":     {"--undo", "1"},
		"one of both":                           {"--write", "--execute", "/opt"},
		`"docs" is no number, file or host`:     {"docs"},
		`write ./a.example or a.example:443`:    {"a.example"},
		`--project is empty`:                    {"--project", "", "1"},
		`flag provided but not defined: --what`: {"--what"},
	} {
		s.says(2, text, append([]string{"allow"}, args...)...)
	}
	s.says(0, "was refused anything in the last seven days", "allow")
}

// What a session tried last does not decide what --yes writes for a path.
func TestAllow_APathAloneIsNotForWriting(t *testing.T) {
	t.Parallel()
	requireReports(t)
	s, file := newAllowScene(t, harness.Settings(nil))
	s.run("exec", "--", "sh", "-c", "echo x >> "+file)
	before := harness.Read(t, s.UserSettings())
	s.says(2, "a session tried to write it", "allow", "--yes", file)
	if harness.Read(t, s.UserSettings()) != before {
		harness.Breach(t, "written without a word about it")
	}
	s.says(0, "Allowed", "allow", "--yes", "--write", file) // the control
}

// No reading opens a socket, and a setting that does is only named.
func TestAllow_ASocketIsNotRead(t *testing.T) {
	t.Parallel()
	requireReports(t)
	s, file := newAllowScene(t, harness.Settings(nil))
	path := filepath.Join(harness.ShortDir(t), "socket")
	listener, err := net.Listen("unix", path)
	harness.Must(t, err)
	defer listener.Close()
	before := harness.Read(t, s.UserSettings())
	s.says(1, `"allowed_unix_sockets" is for you to write`, "allow", "--yes", path)
	s.says(1, "careful: a grant gives the full power of the program behind", "allow", "--yes", path)
	if text := harness.Read(t, s.UserSettings()); text != before {
		t.Errorf("written:\n%s", text)
	}
	s.says(0, "Allowed for sessions", "allow", "--yes", file) // control
}
