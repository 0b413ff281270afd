//go:build linux

package protected

import (
	"iter"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }

// scene is a harness.Scene whose home is not in a temporary directory, because
// default settings open those.
type scene struct{ *harness.Scene }

func newScene(t testing.TB) *scene {
	t.Helper()
	home := harness.OutsideDefaults(t)
	w := &harness.World{Home: home, Project: filepath.Join(home, "project"), Outside: filepath.Join(home, "outside")}
	s := &scene{harness.NewSceneIn(t, w, "")}
	harness.Write(t, filepath.Join(home, ".gitconfig"),
		"[user]\n\tname = Tester\n\temail = tester@example.com\n[protocol \"file\"]\n\tallow = "+
			"always\n[init]\n\tdefaultBranch = main\n")
	for _, dir := range []string{s.Project, s.Outside} {
		harness.MakeDir(t, dir)
	}
	return s
}

// git runs a command outside of any sandbox, and returns what it prints.
func (s *scene) git(dir string, args ...string) string {
	s.T.Helper()
	command := exec.Command("git", args...)
	command.Dir, command.Env = dir, append(harness.Environ(s.World), "GIT_CONFIG_NOSYSTEM=1")
	out, err := command.CombinedOutput()
	if err != nil {
		s.T.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// remake removes the empty project, for git to make it.
func (s *scene) remake() {
	s.T.Helper()
	if err := os.Remove(s.Project); err != nil {
		s.T.Fatal(err)
	}
}

// layouts are the kinds of project that git knows.
var layouts = map[string]func(s *scene){
	"repository": func(s *scene) { s.repository(s.Project) },
	"worktree": func(s *scene) {
		main := filepath.Join(s.Outside, "main")
		s.repository(main)
		s.remake()
		s.git(main, "worktree", "add", "-q", s.Project)
	},
	"worktree of a bare repository": func(s *scene) {
		origin, bare := filepath.Join(s.Outside, "origin"), filepath.Join(s.Outside, "all/.bare")
		s.repository(origin)
		s.git(s.Outside, "clone", "-q", "--bare", origin, bare)
		s.remake()
		s.git(bare, "worktree", "add", "-q", "-b", "work", s.Project)
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
	"package": func(s *scene) {
		s.monorepo(filepath.Join(s.Outside, "mono"))
	},
	"package in a worktree": func(s *scene) {
		mono, side := filepath.Join(s.Outside, "mono"), filepath.Join(s.Outside, "second")
		s.monorepo(mono)
		s.git(mono, "worktree", "add", "-q", side)
		s.Project = filepath.Join(side, "packages/app")
	},
	"none": func(*scene) {},
}

// editor is one that gathers the denials that it gets, reports of protected
// paths among them.
type editor struct {
	*harness.Editor
	denials *harness.Denials
}

func (s *scene) start(settings string, machine harness.Machine) *editor {
	s.T.Helper()
	return s.startWith(harness.Options{Settings: settings, Wrap: machine.Wrap})
}

func (s *scene) startWith(options harness.Options) *editor {
	s.T.Helper()
	e := harness.Start(s.T, s.World, options)
	return &editor{e, harness.RecordDenials(e)}
}

// shared is an editor whose sessions work in projects of several tests. What they
// leave in one project does not matter to another.
type shared struct {
	at     *scene
	editor *editor
}

func share(t testing.TB, settings string) shared {
	t.Helper()
	return shareOn(t, settings, harness.Machine{})
}

func shareOn(t testing.TB, settings string, machine harness.Machine) shared {
	t.Helper()
	s := newScene(t)
	return shared{s, s.start(settings, machine)}
}

// in makes an empty project for a test, and a directory outside of it, and returns
// both with the editor.
func (o shared) in(t testing.TB) (*scene, *editor) {
	t.Helper()
	dir, err := os.MkdirTemp(o.at.Home, "of-a-test-")
	harness.Must(t, err)
	w := *o.at.World
	w.Project, w.Outside = filepath.Join(dir, "project"), filepath.Join(dir, "outside")
	for _, dir := range []string{w.Project, w.Outside} {
		harness.MakeDir(t, dir)
	}
	e := o.editor.For(t)
	e.World = &w
	return &scene{&harness.Scene{World: &w, T: t}}, &editor{e, o.editor.denials}
}

// withoutSandbox makes a scene for each name. One session without a sandbox then
// runs a line in each: what begin returns for it, in a shell of its own, in the
// project of the scene and with its home. It returns the scenes, and all that was
// printed.
func withoutSandbox(
	t testing.TB, names iter.Seq[string], begin func(s *scene, name string) (line string),
) (scenes map[string]*scene, printed string) {
	t.Helper()
	scenes = map[string]*scene{}
	script := ""
	for _, name := range slices.Sorted(names) {
		s := newScene(t)
		scenes[name] = s
		line := begin(s, name)
		script += "(\ncd " + harness.Quote(s.Project) + " || exit\nexport HOME=" + harness.Quote(s.Home) + "\n" +
			line + "\n)\n"
	}
	_, printed, _, _ = newScene(t).start(harness.Off(), harness.Machine{}).run(script)
	return scenes, printed
}

// reports lists the reports of protected paths so far as "ACCESS PATH", paths
// relative to the project.
func (s *scene) reports(e *editor) []string {
	var list []string
	for _, alarm := range e.denials.All() {
		if !strings.HasPrefix(alarm.Access, "protected_") {
			continue // a refusal, for example when git refreshes an index that it can only read
		}
		if alarm.SessionID == "" || alarm.Count != 1 {
			s.T.Errorf("%+v", alarm)
		}
		list = append(list, alarm.Access+" "+strings.TrimPrefix(alarm.Target, s.Project+"/"))
	}
	return list
}

// run runs a line as a tool to its end, and closes it.
func (e *editor) run(line string) (reply protocol.SpawnResult, output string, status int, end protocol.CloseResult) {
	session, status := e.Run(protocol.SpawnParams{Command: "/bin/sh", Args: []string{"-c", line}})
	return session.SpawnResult, session.Output(), status, session.Close(0)
}
