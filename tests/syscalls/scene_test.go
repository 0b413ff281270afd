//go:build linux

package syscalls

import (
	"fmt"
	"strings"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }

// scene is an editor in a world with the victim in its project.
type scene struct {
	*harness.Editor
	t      testing.TB
	victim string
}

func newScene(t testing.TB, settings string) *scene {
	t.Helper()
	return newSceneOn(t, settings, harness.Machine{})
}

func newSceneOn(t testing.TB, settings string, machine harness.Machine) *scene {
	t.Helper()
	at := harness.NewScene(t, "tests/syscalls/victim")
	at.Wrap = machine.Wrap
	return &scene{at.Start(settings), t, at.Victim}
}

// sandboxed and offline are the settings of a session with network and of one
// without.
func sandboxed() string { return harness.Settings(nil) }

func offline() string { return harness.Settings(harness.Sandbox{"allow_network": false}) }

// everywhere has the network, with every service of this machine.
func everywhere() string { return harness.Settings(harness.Sandbox{"localhost": "all"}) }

// ask runs the victim in a session and returns the answers by name.
func (s *scene) ask(actions ...string) map[string]string {
	s.t.Helper()
	session, status := s.Run(protocol.SpawnParams{Command: s.victim, Args: actions})
	if status != 0 {
		s.t.Fatalf("the victim did not get to its end: status %d\n%s", status, session.Output())
	}
	answers := map[string]string{}
	for line := range strings.Lines(session.Output()) {
		name, answer, _ := strings.Cut(strings.TrimSpace(line), " ")
		answers[name] = answer
	}
	return answers
}

// call is the action of a system call.
func call(name string, number uint64, args ...uint64) string {
	action := fmt.Sprintf("%s=%d", name, number)
	for _, arg := range args {
		action += fmt.Sprintf(",%#x", arg)
	}
	return action
}

// shell is a line for a shell on a terminal.
func shell(line string) protocol.SpawnParams {
	return protocol.SpawnParams{Kind: protocol.Terminal, Command: line}
}
