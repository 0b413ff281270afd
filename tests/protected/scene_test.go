//go:build linux

package protected

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/client"
	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }

// scene is a world whose home is not in a temporary directory, which default
// settings open.
type scene struct {
	*harness.World
	t testing.TB
}

func newScene(t testing.TB) *scene {
	t.Helper()
	home := harness.OutsideDefaults(t)
	s := &scene{&harness.World{Home: home, Project: filepath.Join(home, "project"),
		Outside: filepath.Join(home, "outside")}, t}
	harness.Write(t, filepath.Join(home, ".gitconfig"),
		"[user]\n\tname = Tester\n\temail = tester@example.com\n[protocol \"file\"]\n\tallow = "+
			"always\n[init]\n\tdefaultBranch = main\n")
	for _, dir := range []string{s.Project, s.Outside} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

func (s *scene) inside(name string) string { return filepath.Join(s.Project, name) }

// git runs a command outside of any sandbox, and returns what it prints.
func (s *scene) git(dir string, args ...string) string {
	s.t.Helper()
	command := exec.Command("git", args...)
	command.Dir, command.Env = dir, append(harness.Environ(s.World), "GIT_CONFIG_NOSYSTEM=1")
	out, err := command.CombinedOutput()
	if err != nil {
		s.t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// repository makes a repository with one commit.
func (s *scene) repository(dir string) {
	s.t.Helper()
	s.git(filepath.Dir(dir), "init", "-q", dir)
	harness.Write(s.t, filepath.Join(dir, "file"), "content\n")
	s.git(dir, "add", ".")
	s.git(dir, "commit", "-q", "-m", "first")
}

// remake takes the empty project away, for git to make it.
func (s *scene) remake() {
	s.t.Helper()
	if err := os.Remove(s.Project); err != nil {
		s.t.Fatal(err)
	}
}

// layouts are the kinds of project that there are to git.
var layouts = map[string]func(s *scene){
	"repository": func(s *scene) { s.repository(s.Project) },
	"worktree": func(s *scene) {
		main := filepath.Join(s.Outside, "main")
		s.repository(main)
		s.remake()
		s.git(main, "worktree", "add", "-q", s.Project)
	},
	"submodule": func(s *scene) {
		origin, super := filepath.Join(s.Outside, "origin"), filepath.Join(s.Outside, "super")
		s.repository(origin)
		s.repository(super)
		s.git(super, "submodule", "--quiet", "add", origin, "deps/module")
		s.git(super, "commit", "-q", "-m", "module")
		s.Project = filepath.Join(super, "deps/module")
		s.git(s.Project, "checkout", "-q", "-B", "main")
	},
	"none": func(*scene) {},
}

// editor is a sidecar with what it has told of protected paths.
type editor struct {
	*harness.Editor
	mu     sync.Mutex // guards alarms
	alarms []protocol.DeniedParams
}

func (s *scene) start(settings string, machine harness.Machine) *editor {
	s.t.Helper()
	e := &editor{Editor: harness.Start(s.t, s.World, harness.Options{Settings: settings, Wrap: machine.Wrap})}
	client.On(e.Client, protocol.Denied, func(p protocol.DeniedParams) {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.alarms = append(e.alarms, p)
	})
	return e
}

// told lists the alarms so far as "ACCESS PATH", paths relative to the project.
func (s *scene) reports(e *editor) []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	var list []string
	for _, alarm := range e.alarms {
		if !strings.HasPrefix(alarm.Access, "protected_") {
			continue // a refusal, as when git would like to refresh an index that it can only read
		}
		if alarm.SessionID == "" || alarm.Count != 1 {
			s.t.Errorf("%+v", alarm)
		}
		list = append(list, alarm.Access+" "+strings.TrimPrefix(alarm.Target, s.Project+"/"))
	}
	return list
}

// run runs a line as a tool to its end, and closes it.
func (e *editor) run(line string) (reply protocol.SpawnResult, output string, status int, end protocol.CloseResult) {
	session := e.Spawn(protocol.SpawnParams{Kind: protocol.Tool, Command: "/bin/sh", Args: []string{"-c", line}})
	status = -1
	if exit := session.Exit(); exit.ExitCode != nil {
		status = *exit.ExitCode
	}
	return session.SpawnResult, session.Output(), status, session.Close(0)
}
