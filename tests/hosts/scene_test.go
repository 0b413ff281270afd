//go:build linux

package hosts

import (
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }

// scene is a world with hosts; see the victim's world.go.
type scene struct {
	*harness.Scene
	dir string // with the world's logs, and its certificate
}

func newScene(t testing.TB) *scene {
	t.Helper()
	if !harness.Namespaces(t) {
		harness.Skip(t, "user_namespaces", "the world is a network namespace")
	}
	s := &scene{harness.NewScene(t, "tests/hosts/victim"), ""}
	s.dir = s.ProjectPath("world")
	harness.MakeDir(t, s.dir)
	s.Wrap = func(command *exec.Cmd) {
		command.Args = append([]string{s.Victim, "world", s.dir, command.Path}, command.Args[1:]...)
		command.Path = s.Victim
	}
	return s
}

// under starts the sidecar in the world, and there under a filter that takes
// features from it.
func (s *scene) under(filter func(*exec.Cmd)) *scene {
	inWorld := s.Wrap
	s.Wrap = func(command *exec.Cmd) {
		filter(command)
		inWorld(command)
	}
	return s
}

// unconfined runs the victim in a world of its own without a sandbox, and returns
// what it prints.
func (s *scene) unconfined(args ...string) string {
	s.T.Helper()
	command := exec.Command(s.Victim, args...)
	command.Dir = s.Project
	s.Wrap(command)
	output, err := command.Output()
	if err != nil {
		s.T.Logf("unconfined: %s: %v", strings.Join(args, " "), err)
	}
	return strings.TrimSpace(string(output))
}

// allowed are settings that allow some hosts.
func allowed(hosts ...string) harness.Sandbox {
	return harness.Sandbox{"allow_network": false, "allowed_hosts": hosts}
}

// usual are the hosts that most tests allow.
var usual = []string{
	"allowed.example", "*.allowed.example:443", "rebound.example", "metadata.example", "private.example",
	"here.example", "routed.example", "mixed.example", "silent.example", "unreachable.example", "missing.example",
}

// start starts an editor with these settings, on a machine that can tell hosts
// apart.
func (s *scene) start(settings harness.Sandbox) *harness.Editor {
	s.T.Helper()
	harness.Require(s.T, "network_hosts")
	return s.Start(harness.Defaults(settings))
}

// empty begins a command line that runs with an empty environment.
const empty = "env -i PATH=/usr/local/bin:/usr/bin:/bin HOME=$HOME LANG=C.UTF-8 timeout 300 "

// run runs a command line with an empty environment, and returns what it prints.
func (s *scene) run(e *harness.Editor, line string) string {
	s.T.Helper()
	output, _ := e.Tool(empty + line + " 2>&1")
	return strings.TrimSpace(output)
}

// victim runs the victim.
func (s *scene) victim(e *harness.Editor, args ...string) string {
	s.T.Helper()
	return s.run(e, s.Victim+" "+strings.Join(args, " "))
}

// answers runs the victim with each line, and compares what it prints.
func (s *scene) answers(e *harness.Editor, want map[string]string) {
	s.T.Helper()
	for line, want := range want {
		if got := s.victim(e, line); got != want {
			s.T.Errorf("%s: %s, want %s", line, got, want)
		}
	}
}

// asked lists the names that the world's DNS server was asked about.
func (s *scene) asked() []string {
	s.T.Helper()
	var names []string
	for line := range strings.Lines(harness.Read(s.T, filepath.Join(s.dir, "asked"))) {
		names = append(names, strings.Fields(line)[0])
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// visits is what the world's servers have noted.
func (s *scene) visits() string { return harness.Read(s.T, filepath.Join(s.dir, "visits")) }

// awaitDenial waits until a connection to a target was reported.
func awaitDenial(t testing.TB, denials *harness.Denials, target string) protocol.DeniedParams {
	t.Helper()
	var found protocol.DeniedParams
	harness.Eventually(t, "a report about "+target, func() bool {
		for _, d := range denials.All() {
			if d.Access == "connect" && d.Target == target {
				found = d
				return true
			}
		}
		return false
	})
	return found
}

// program is the name of the program of a denial.
func program(d protocol.DeniedParams) string {
	if d.Process == nil {
		return ""
	}
	return d.Process.Name
}
