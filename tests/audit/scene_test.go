//go:build unix

package audit

import (
	"bufio"
	"encoding/json"
	"errors"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	trail "github.com/sandbox-sidecar/sandbox-sidecar/audit"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }

// scene is a user whose settings keep a trail.
type scene struct {
	t *testing.T
	w *harness.World
	// wrap changes each command; nil: nothing.
	wrap func(*exec.Cmd)
	env  []string
}

func newScene(t *testing.T, block harness.Sandbox) *scene {
	t.Helper()
	harness.RequireSandbox(t)
	s := &scene{t: t, w: harness.NewWorldOutsideDefaults(t)}
	s.settings(block)
	return s
}

// settings are a sandbox with these keys.
func (s *scene) settings(block harness.Sandbox) {
	s.t.Helper()
	harness.Write(s.t, s.w.UserSettings(), harness.Defaults(block))
}

// dir is where the trail of a file is.
func (s *scene) dir() string { return s.w.HomePath(".local/state/sandbox-sidecar/audit") }

// run runs the sidecar, and returns what it prints and whether it succeeds.
func (s *scene) run(args ...string) (string, bool) {
	s.t.Helper()
	return s.runIn(s.w.Project, args...)
}

// trust trusts the project's settings.
func (s *scene) trust() (string, bool) {
	s.t.Helper()
	return s.run("trust", "--digest", harness.Digest(s.t, s.w.ProjectPath(".zed/settings.json")), s.w.Project)
}

func (s *scene) runIn(dir string, args ...string) (string, bool) {
	s.t.Helper()
	command := s.command(args...)
	command.Dir = dir
	out, err := command.CombinedOutput()
	var status *exec.ExitError
	if err != nil && !errors.As(err, &status) {
		s.t.Fatal(err)
	}
	return string(out), err == nil
}

func (s *scene) command(args ...string) *exec.Cmd {
	command := exec.Command(harness.Binary(s.t), args...)
	command.Dir, command.Env = s.w.Project, append(harness.Environ(s.w), s.env...)
	if s.wrap != nil {
		s.wrap(command)
	}
	return command
}

// events reads the trail by the command that users have.
func (s *scene) events(args ...string) []trail.Event {
	s.t.Helper()
	out, err := s.command(append([]string{"audit", "--json"}, args...)...).Output()
	if err != nil {
		s.t.Fatalf("audit: %v: %s", err, out)
	}
	var list []trail.Event
	lines := bufio.NewScanner(strings.NewReader(string(out)))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var event trail.Event
		if err := json.Unmarshal(lines.Bytes(), &event); err != nil {
			s.t.Fatalf("%s: %v", lines.Text(), err)
		}
		list = append(list, event)
	}
	return list
}

// of are the events of a kind.
func of(events []trail.Event, kind string) []trail.Event {
	return slices.DeleteFunc(slices.Clone(events), func(e trail.Event) bool { return e.Event != kind })
}

func kinds(events []trail.Event) (list []string) {
	for _, e := range events {
		list = append(list, e.Event)
	}
	return list
}

// raw is every byte of the trail.
func (s *scene) raw() string {
	s.t.Helper()
	files, err := filepath.Glob(filepath.Join(s.dir(), "audit*"))
	if err != nil {
		s.t.Fatal(err)
	}
	var all strings.Builder
	for _, file := range files {
		all.WriteString(harness.Read(s.t, file))
	}
	return all.String()
}
