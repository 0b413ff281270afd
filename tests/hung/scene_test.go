//go:build linux

package hung

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/client"
	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/deadline"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }

const (
	// soon bounds what does not wait for the hanging file system, which takes
	// two seconds each time.
	soon = 2 * time.Second
	// atOnce is less than any wait for a file system.
	atOnce = 1500 * time.Millisecond
	// once bounds what cannot be repeated, and may wait for the file system once
	// or twice. It is less than the ten seconds for processes that do not die.
	once = 8 * time.Second
)

// where is a place for the hanging file system.
type where struct {
	name string
	// mount is the directory that it is mounted on; files are its content.
	mount func(w *harness.World) string
	files map[string]string
	// settings are the user's; nil: the harness's own.
	settings func(w *harness.World) string
	// private closes the place to other users.
	private bool
	// prepare makes what else is needed; nil: nothing.
	prepare func(t *testing.T, w *harness.World)
	env     func(w *harness.World) []string
	// cwd is the working directory of the session that needs the place; nil:
	// the project.
	cwd func(w *harness.World) string
	// probe is a command of that session, and printed its output while the
	// place answers.
	probe, printed string
	// refused says that no session starts that needs the place. The error then
	// names named.
	refused bool
	named   func(w *harness.World) string
}

func project(w *harness.World) string { return w.Project }

func hungDir(w *harness.World) string { return filepath.Join(w.Outside, "hung") }

// repository is the content of a project's .git.
var repository = map[string]string{
	"HEAD": "ref: refs/heads/main\n", "config": "[core]\n", "objects/x": "",
	"refs/x": "", "hooks/x": "",
}

var places = []where{
	{
		name: "the user's settings", mount: func(w *harness.World) string { return filepath.Dir(w.UserSettings()) },
		files: map[string]string{"settings.json": harness.Settings(nil)}, probe: "echo is $((40+2))", printed: "is 42",
	},
	{
		name: "the project", mount: project, files: map[string]string{"hello": "from inside\n"}, probe: "cat hello",
		printed: "from inside",
		refused: true, named: project,
	},
	{
		name: "the project's .git", mount: func(w *harness.World) string { return filepath.Join(w.Project, ".git") },
		files: repository, probe: "cat .git/HEAD", printed: "refs/heads/main",
		refused: true, named: func(w *harness.World) string { return filepath.Join(w.Project, ".git") },
	},
	{
		name: "the project's settings", mount: func(w *harness.World) string {
			return filepath.Join(w.Project, ".zed")
		},
		files: map[string]string{"settings.json": "{}"}, probe: "cat .zed/settings.json", printed: "{}",
		refused: true, named: func(w *harness.World) string { return filepath.Join(w.Project, ".zed") },
	},
	{
		name: "what git's configuration includes", mount: hungDir, files: map[string]string{"gitconfig": "[core]\n"},
		prepare: func(t *testing.T, w *harness.World) {
			harness.Write(t, filepath.Join(w.Home, ".gitconfig"), "[include]\n\tpath = "+hungDir(w)+"/gitconfig\n")
		},
		probe: "echo is $((40+2))", printed: "is 42",
	},
	{
		name: "a granted path", mount: hungDir, files: map[string]string{"data": "some data\n"},
		settings: func(w *harness.World) string {
			return harness.Settings(harness.Sandbox{"additional_read_only_paths": []string{hungDir(w)}})
		},
		probe: "cat ../outside/hung/data", printed: "some data",
	},
	{
		name: "the working directory", mount: hungDir, files: map[string]string{"data": "some data\n"},
		settings: func(w *harness.World) string {
			return harness.Settings(harness.Sandbox{"additional_read_only_paths": []string{hungDir(w)}})
		},
		cwd: hungDir, probe: "cat data", printed: "some data", refused: true, named: hungDir,
	},
	{
		name: "the list of trusted projects", mount: func(w *harness.World) string {
			return filepath.Join(w.Home, ".local/state/sandbox-sidecar")
		},
		files: map[string]string{"trust.json": `{"version": 1, "projects": []}`},
		env: func(w *harness.World) []string {
			return []string{"XDG_RUNTIME_DIR=" + filepath.Join(w.Outside, "runtime")}
		},
		prepare: func(t *testing.T, w *harness.World) {
			harness.Must(t, os.Mkdir(filepath.Join(w.Outside, "runtime"), 0o700))
		},
		probe: "echo is $((40+2))", printed: "is 42",
	},
	{
		// Every session has a directory there, and writes the journal.
		name: "the state directory", mount: (*harness.World).State, files: map[string]string{"x": ""}, private: true,
		probe: "echo is $((40+2))", printed: "is 42",
	},
	{
		name: "the cache directory", mount: func(w *harness.World) string { return w.HomePath(".cache") },
		files: map[string]string{"sandbox-sidecar/x": "", "go-build/x": ""}, private: true,
		settings: func(*harness.World) string {
			return harness.Settings(harness.Sandbox{"toolchains": []string{"go"}})
		},
		probe: "echo is $((40+2))", printed: "is 42",
	},
}

// scene is a sidecar with a healthy project and a place that hangs.
type scene struct {
	*harness.Editor
	t       *testing.T
	at      where
	fuse    *harness.FUSE
	healthy string
	command *exec.Cmd
	longest time.Duration
}

func newScene(t *testing.T, at where, hangs bool, wrap func(*exec.Cmd)) *scene {
	t.Helper()
	harness.Require(t, "filesystem")
	w := harness.NewWorld(t)
	s := &scene{t: t, at: at, healthy: filepath.Join(w.Outside, "healthy")}
	for _, dir := range []string{s.healthy, at.mount(w)} {
		harness.Must(t, os.MkdirAll(dir, 0o700))
	}
	if at.prepare != nil {
		at.prepare(t, w)
	}
	s.fuse = harness.NewFUSE(t, at.mount(w), at.files)
	s.fuse.Private = at.private
	if hangs {
		s.fuse.Hang()
	}
	options := harness.Options{Wrap: func(command *exec.Cmd) {
		if wrap != nil {
			wrap(command)
		}
		s.fuse.Wrap(command)
		s.command = command
	}}
	if at.settings != nil {
		options.Settings = at.settings(w)
	}
	if at.env != nil {
		options.Env = at.env(w)
	}
	s.Editor = harness.Start(t, w, options)
	t.Cleanup(s.fuse.Answer) // before the sidecar is hung up on, so that it can end if it waits for an answer
	return s
}

// everyEnd runs a test for each way in which the sidecar ends, with cgroups and
// without. If they take turns, each way is tried with cgroups or without, which
// depends on first.
func everyEnd(t *testing.T, first int, at string, run func(t *testing.T, s *scene, how string)) {
	t.Helper()
	modes := []struct {
		name string
		wrap func(testing.TB) func(*exec.Cmd)
	}{
		{"as it comes", func(testing.TB) func(*exec.Cmd) { return nil }},
		{"without cgroups", harness.WithoutCgroups},
	}
	for i, mode := range modes {
		for j, how := range []string{"end of stdin", "SIGTERM", "exit"} {
			if !harness.Turn(t, first+i+j, len(modes)) {
				continue
			}
			t.Run(mode.name+", "+how, func(t *testing.T) {
				t.Parallel()
				run(t, newScene(t, place(t, at), false, mode.wrap(t)), how)
			})
		}
	}
}

// repeated runs a function that must return soon. It is repeated if a busy
// machine held it up.
func (s *scene) repeated(what string, do func()) {
	s.t.Helper()
	harness.Quick(s.t, what, soon, func() time.Duration { return s.timed(what, do) })
}

// timed runs a function that must return after at most once, apart from the time
// for which the sidecar and its descendants had no processor. It returns how long
// it took, and records the longest time.
func (s *scene) timed(what string, do func()) (took time.Duration) {
	s.t.Helper()
	returned := make(chan struct{})
	go func() {
		select {
		case <-returned:
		case <-deadline.After(harness.Timeout):
			s.t.Errorf("%s: not done after %s", what, harness.Timeout)
			s.fuse.Answer() // so that the test ends
		}
	}()
	took = deadline.Took(s.Process(), do)
	close(returned)
	s.longest = max(s.longest, took)
	if took > once {
		s.t.Errorf("%s: took %s, more than %s", what, took.Round(time.Millisecond), once)
	}
	return took
}

// needs are the parameters of a session that needs the place.
func (s *scene) needs() protocol.SpawnParams {
	p := protocol.SpawnParams{
		Kind: protocol.Terminal, ProjectDir: s.World.Project, Cwd: s.World.Project,
		Command: s.at.probe,
	}
	if s.at.cwd != nil {
		p.Cwd = s.at.cwd(s.World)
	}
	return p
}

// works runs a session that needs the place while the place answers.
func (s *scene) works() {
	s.t.Helper()
	session := s.Spawn(s.needs())
	if exit := session.Exit(); exit.ExitCode == nil || *exit.ExitCode != 0 ||
		!strings.Contains(session.Output(), s.at.printed) {
		s.t.Fatalf("while it answers: %+v, printed %q", exit, session.Output())
	}
	session.Close(0)
}

// health starts a session in a healthy project, lets it echo, and closes it.
func (s *scene) health(kind protocol.Kind) {
	s.t.Helper()
	params := protocol.SpawnParams{
		Kind: kind, Cwd: s.healthy, ProjectDir: s.healthy, Command: "read line; echo got $line",
	}
	if kind == protocol.Tool {
		params.Command = "echo got it"
	}
	result, err := harness.Try(s.Editor, protocol.Spawn, params)
	if err != nil {
		s.t.Errorf("a %s elsewhere: %v", kind, err)
		return
	}
	if kind == protocol.Terminal {
		harness.Notify(s.Editor, protocol.Input, protocol.InputParams{
			SessionID: result.SessionID, Data: []byte("it\n"),
		})
	}
	session := s.Session(result)
	session.Await("got it")
	session.Exit()
	if closed := session.Close(0); closed.Remaining != 0 {
		s.t.Errorf("a %s elsewhere is closed with %d left", kind, closed.Remaining)
	}
}

// end ends the sidecar in a given way, waits for its end, and returns how long
// that took.
func (s *scene) end(how string) (took time.Duration) {
	s.t.Helper()
	hungUp := make(chan struct{})
	took = s.timed(how, func() {
		switch how {
		case "end of stdin":
			go func() { defer close(hungUp); _ = s.HangUp() }()
		case "SIGTERM":
			harness.Must(s.t, s.command.Process.Signal(syscall.SIGTERM))
		case "exit":
			harness.Notify(s.Editor, protocol.Exit, protocol.Empty{})
		}
		// Its helpers may take longer, and hold its standard error.
		harness.Eventually(s.t, "the sidecar has ended", func() bool { return !harness.Alive(s.Process()) })
	})
	if how != "end of stdin" {
		_ = s.HangUp()
	} else {
		<-hungUp
	}
	return took
}

// codeOf is the code and the message of an error response.
func codeOf(err error) (protocol.Code, string) {
	var refused *client.Error
	if !errors.As(err, &refused) {
		return 0, ""
	}
	return refused.Code, refused.Message
}
