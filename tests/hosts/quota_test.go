//go:build linux

package hosts

import (
	"regexp"
	"strconv"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/client"
	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// grabs starts a session that takes all connections that it gets: of hosts that
// are silent, and of one that answers.
func (s *scene) grabs(e *harness.Editor) (session *harness.Session, silent, open int) {
	s.T.Helper()
	session = e.Spawn(protocol.SpawnParams{
		Kind: protocol.Tool, Cwd: s.Project, Command: s.Victim + " grab allowed.example:81 allowed.example:7",
	})
	session.Await("holding")
	found := regexp.MustCompile(`(\d+) to \S+, then cannot assign requested address`).
		FindAllStringSubmatch(session.Output(), -1)
	if len(found) != 2 {
		s.T.Fatalf("not refused: %s", session.Output())
	}
	silent, _ = strconv.Atoi(found[0][1])
	open, _ = strconv.Atoi(found[1][1])
	return session, silent, open
}

// A session has as many connections as its settings say, and is told why it
// gets no more. The control is a session that may have more.
func TestQuota_BoundsTheConnectionsOfASession(t *testing.T) {
	t.Parallel()
	for most, want := range map[int]struct{ pending, open int }{0: {64, 256}, 600: {150, 600}} {
		s := newScene(t)
		settings := allowed("allowed.example")
		if most > 0 {
			settings["limits"] = harness.Sandbox{"connections": most}
		}
		e := s.start(settings)
		told := make(chan protocol.LimitParams, 8)
		client.On(e.Client, protocol.LimitReached, func(p protocol.LimitParams) { told <- p })
		session, silent, open := s.grabs(e)
		// Those to the host that answers wait for a moment, too.
		if silent != want.pending || open > want.open-want.pending {
			harness.Breach(t, "limits.connections %d: %d wait, and %d are open", most, silent, open)
		}
		harness.Eventually(t, "it is told", func() bool { return len(told) > 0 })
		if got := <-told; got.Setting != "limits.connections" || got.SessionID != session.SessionID {
			t.Errorf("told %+v", got)
		}
	}
}

// Whatever one session holds, the others connect as before.
func TestQuota_OneSessionLeavesTheOthersTheirs(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	e := s.start(allowed("allowed.example"))
	other := e.Spawn(protocol.SpawnParams{
		Kind: protocol.Terminal, Cwd: s.Project, Command: s.Victim + " rounds allowed.example:7",
	})
	other.Await("ready")
	rounds := 0
	// measure is the least median of a few, as other programs run, too.
	measure := func() int {
		least := 0
		for range 5 {
			rounds++
			other.Type("\n")
			pattern := regexp.MustCompile(`median (\d+)\.`)
			var all [][]string
			harness.Eventually(t, "a round ends", func() bool {
				all = pattern.FindAllStringSubmatch(other.Output(), -1)
				return len(all) == rounds
			})
			if median, _ := strconv.Atoi(all[rounds-1][1]); least == 0 || median < least {
				least = median
			}
		}
		return least
	}
	idle := measure()
	for range 4 { // each holds what it gets
		s.grabs(e)
	}
	if beside := measure(); beside > 2*idle {
		harness.Breach(t, "a round takes %d µs beside sessions that hold all they get, and %d µs before", beside, idle)
	}
}

// A client that closes its connection ends the attempt to connect, so it has its
// place again. The control is a session that keeps them.
func TestQuota_ClosedConnectionsGiveTheirPlacesBack(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	e := s.start(allowed("allowed.example"))
	if got := s.victim(e, "leave allowed.example:81 400"); got != "0 failed" {
		t.Errorf("those that it has closed still count: %s", got)
	}
	if _, silent, _ := s.grabs(e); silent != 64 {
		t.Errorf("%d are kept", silent)
	}
}
