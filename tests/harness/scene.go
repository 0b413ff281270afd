package harness

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/client"
	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
)

// Scene is a world with a hostile program, the victim, in its project, where
// sessions may execute it.
type Scene struct {
	*World
	T testing.TB
	// Victim is the program's path.
	Victim string
	// Wrap changes the command of every sidecar of the scene; nil: not at all.
	Wrap func(*exec.Cmd)

	pkg string
}

// NewScene makes a scene in a new world. The victim is the given package of
// this module; "" means that there is none.
func NewScene(t testing.TB, pkg string) *Scene {
	t.Helper()
	return NewSceneIn(t, NewWorld(t), pkg)
}

// NewSceneIn makes a scene in a given world, whose project exists.
func NewSceneIn(t testing.TB, w *World, pkg string) *Scene {
	t.Helper()
	s := &Scene{World: w, T: t, pkg: pkg}
	if pkg != "" {
		s.Victim = s.ProjectPath("victim")
		s.CopyVictim(s.Victim)
	}
	return s
}

// CopyVictim puts a copy of the victim at another path.
func (s *Scene) CopyVictim(path string) {
	s.T.Helper()
	Victim(s.T, s.pkg, path)
}

// Start starts an editor in the scene; env is added to the sidecar's
// environment.
func (s *Scene) Start(settings string, env ...string) *Editor {
	s.T.Helper()
	return Start(s.T, s.World, Options{Settings: settings, Env: env, Wrap: s.Wrap})
}

// ProjectPath names a file in the project.
func (w *World) ProjectPath(name string) string { return filepath.Join(w.Project, name) }

// OutsidePath names a file in the directory that is not granted.
func (w *World) OutsidePath(name string) string { return filepath.Join(w.Outside, name) }

// HomePath names a file in the home.
func (w *World) HomePath(name string) string { return filepath.Join(w.Home, name) }

// Denials gathers what a sidecar reports with terminal/denied. Its methods are
// safe for concurrent use.
type Denials struct {
	mu   sync.Mutex // guards list
	list []protocol.DeniedParams
}

// RecordDenials gathers the denials of an editor from now on.
func RecordDenials(e *Editor) *Denials {
	d := &Denials{}
	client.On(e.Client, protocol.Denied, func(p protocol.DeniedParams) {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.list = append(d.list, p)
	})
	return d
}

// All lists the denials so far.
func (d *Denials) All() []protocol.DeniedParams {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.list)
}

// Of lists the denials of one session so far.
func (d *Denials) Of(sessionID string) []protocol.DeniedParams {
	return slices.DeleteFunc(d.All(), func(p protocol.DeniedParams) bool { return p.SessionID != sessionID })
}

// ShortDir makes a directory in /tmp whose name leaves room in the address of a
// socket (108 bytes).
func ShortDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "sc-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// MakeDir makes a directory, and those above it.
func MakeDir(t testing.TB, path string) {
	t.Helper()
	Must(t, os.MkdirAll(path, 0o700))
}

// Must ends the test on an error of its own preparations.
func Must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Quote makes one word of a shell's command line.
func Quote(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }
