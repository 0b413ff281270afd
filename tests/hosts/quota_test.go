//go:build linux

package hosts

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
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

// What a session does not read of its connections takes little of the memory that
// all programs of the machine share for TCP.
func TestQuota_BoundsWhatIsNotRead(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	e := s.start(allowed("allowed.example"))
	const connections = 32
	session := e.Spawn(protocol.SpawnParams{
		Kind: protocol.Tool, Cwd: s.Project,
		Command: fmt.Sprintf("%s hoard allowed.example:19 %d", s.Victim, connections),
	})
	session.Await("hoarding")
	sidecar := outsideOf(t, session.PID)
	var before, unread []int
	harness.Eventually(t, "the buffers are full", func() bool {
		before, unread = unread, received(t, sidecar, 19)
		return len(unread) == connections && slices.Equal(before, unread)
	})
	slices.Sort(unread)
	sum := 0
	for _, bytes := range unread {
		sum += bytes
	}
	t.Logf("%d bytes, at most %d for one", sum, unread[connections-1])
	// The first sixteen have no bound of ours. The kernel doubles that of the
	// others (socket(7)).
	const first, bound = 16, 2 * 256 << 10
	if most := unread[connections-1-first]; most > bound {
		harness.Breach(t, "the kernel holds %d bytes for one connection", most)
	}
	if sum < 2<<20 {
		t.Errorf("the control: only %d bytes are unread", sum)
	}
}

// outsideOf is the first ancestor of a process in another network namespace.
func outsideOf(t *testing.T, pid int) int {
	t.Helper()
	network := func(pid int) string {
		name, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/net", pid))
		harness.Must(t, err)
		return name
	}
	for own := network(pid); network(pid) == own; {
		_, rest, _ := strings.Cut(harness.Read(t, fmt.Sprintf("/proc/%d/status", pid)), "\nPPid:\t")
		line, _, _ := strings.Cut(rest, "\n")
		parent, err := strconv.Atoi(line)
		harness.Must(t, err)
		pid = parent
	}
	return pid
}

// received lists how many bytes wait in each connection of a process's network
// namespace to a port (proc_net_tcp.rst, "rx_queue").
func received(t *testing.T, pid, port int) (list []int) {
	t.Helper()
	to := fmt.Sprintf(":%04X", port)
	for line := range strings.Lines(harness.Read(t, fmt.Sprintf("/proc/%d/net/tcp", pid))) {
		const remote, state, queues, established = 2, 3, 4, "01"
		fields := strings.Fields(line)
		if len(fields) <= queues || fields[state] != established || !strings.HasSuffix(fields[remote], to) {
			continue
		}
		_, waiting, _ := strings.Cut(fields[queues], ":")
		bytes, err := strconv.ParseInt(waiting, 16, 64)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, int(bytes))
	}
	return list
}
