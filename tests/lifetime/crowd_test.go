//go:build linux

package lifetime

import (
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// sandboxes are the settings that a promise must hold under.
var sandboxes = []struct{ name, settings string }{{"sandboxed", harness.Defaults(nil)}, {"unsandboxed", harness.Off()}}

// A session of a thousand processes is closed as a whole.
func TestAThousandProcessesAreClosed(t *testing.T) {
	t.Parallel()
	const crowd = 1000
	modes := trackingModes(t)
	for i, mode := range modes {
		for j, sandbox := range sandboxes {
			if !harness.Turn(t, i+j, len(modes)) {
				continue
			}
			// Not in parallel: two thousand processes would show nothing more.
			t.Run(sandbox.name+" "+mode.name, func(t *testing.T) {
				aCrowdMustDie(t, crowd, sandbox.settings, mode.wrap(t))
			})
		}
	}
}

func aCrowdMustDie(t *testing.T, crowd int, settings string, wrap func(*exec.Cmd)) {
	t.Helper()
	w := harness.NewWorld(t)
	e, _ := reaped(t, w, settings, wrap)
	// Each is a copy of the shell that waits, with the token in its command line. To
	// execute a program a thousand times would take most of the test's time, and a
	// process ends in the same way, whatever it has executed.
	token := "crowd-" + uuid.NewString()
	_, waits := startTogether(t, w)
	s := e.Spawn(protocol.SpawnParams{
		Kind: protocol.Tool,
		Command: fmt.Sprintf("i=0; while [ $i -lt %d ]; do (%s) & i=$((i+1)); done; echo all; wait # %s",
			crowd, waits, token),
	})
	s.Await("all")
	result := s.Close(0)
	if left := harness.Find(token); len(left) != 0 {
		harness.Breach(t, "close was answered with %d processes alive", len(left))
	}
	if result.Killed <= crowd || result.Remaining != 0 {
		harness.Breach(t, "close says %+v, expected more than %d killed and none left", result, crowd)
	}
	t.Logf("%s, guarantee %t: %d processes killed in %d ms", s.Tracking.Mechanism, s.Tracking.Guarantee, result.Killed,
		result.ElapsedMs)
	mustLeaveNobody(t, e.Client)
}

// Eight chains fork from process to process as fast as the kernel can. All are
// dead when a session is reported as ended, and when the sidecar was killed. No
// list of processes can show that; the counters that the chains increment do.
func TestChainsAtFullSpeedDie(t *testing.T) {
	t.Parallel()
	for i, sandbox := range sandboxes {
		for j, ending := range chainEndings {
			if !harness.Turn(t, i+j, len(sandboxes)) {
				continue
			}
			t.Run(sandbox.name+" "+ending.name, func(t *testing.T) {
				chainsMustDie(t, sandbox.settings, ending)
			})
		}
	}
}

// chainEnding is one way in which a session with chains ends.
type chainEnding struct {
	name string
	end  func(t *testing.T, s *harness.Session, sidecar int) (killed int)
}

var chainEndings = []chainEnding{
	{"close", func(_ *testing.T, s *harness.Session, _ int) int { return s.Close(0).Killed }},
	{"leader's SIGKILL", func(t *testing.T, s *harness.Session, _ int) int {
		kill(t, s.PID, unix.SIGKILL)
		s.Exit()
		return 0
	}},
	{"SIGKILL", func(t *testing.T, _ *harness.Session, sidecar int) int {
		kill(t, sidecar, unix.SIGKILL)
		return 0
	}},
}

// chainsMustDie ends a session with chains. wraps change how its sidecar
// starts.
func chainsMustDie(t *testing.T, settings string, ending chainEnding, wraps ...func(*exec.Cmd)) {
	t.Helper()
	w := harness.NewWorld(t)
	e, sidecar := reaped(t, w, settings, wraps...)
	if s := e.Spawn(protocol.SpawnParams{Kind: protocol.Tool, Command: "true"}); !s.Tracking.Guarantee {
		harness.Skip(t, "process_tracking", s.Tracking.Mechanism+" gives no guarantee")
	}
	c := newChains(t, filepath.Join(w.Project, "page"))
	victim := filepath.Join(w.Project, "victim")
	harness.Victim(t, "tests/victim", victim)
	s := e.Spawn(protocol.SpawnParams{
		Kind: protocol.Tool, Command: victim,
		Args: []string{"chains", c.file.Name(), fmt.Sprint(chains)},
	})
	c.mustRun(t)
	begun := time.Now()
	killed := ending.end(t, s, sidecar)
	if ending.name == "SIGKILL" {
		mustLeaveNobody(t, e.Client) // nothing else reports that the watchdog is done
	}
	elapsed := time.Since(begun)
	c.mustStandStill(t)
	t.Logf("%s: %d chains after %d hops dead in %d ms, %d killed", s.Tracking.Mechanism, chains, c.hops(),
		elapsed.Milliseconds(), killed)
	mustLeaveNobody(t, e.Client)
}

const chains = 8

// chainPage is the file that chains and test share: eight bytes that stop the
// chains, then for each chain its number of forks and its present process id.
type chainPage struct{ file *os.File }

// newChains makes one, which stops its chains with the test.
func newChains(t *testing.T, path string) *chainPage {
	t.Helper()
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	if err := file.Truncate(4096); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_, _ = file.WriteAt([]byte{1}, 0)
		file.Close()
	})
	return &chainPage{file}
}

// each calls visit with the number of forks of every chain.
func (c *chainPage) each(visit func(hops uint64)) {
	page := make([]byte, 4096)
	_, _ = c.file.ReadAt(page, 0)
	for i := range chains {
		visit(binary.NativeEndian.Uint64(page[8+16*i:]))
	}
}

func (c *chainPage) hops() (sum uint64) {
	c.each(func(hops uint64) { sum += hops })
	return sum
}

// mustRun waits until every chain has forked, and forks again.
func (c *chainPage) mustRun(t *testing.T) {
	t.Helper()
	harness.Eventually(t, "every chain hops", func() bool {
		least := ^uint64(0)
		c.each(func(hops uint64) { least = min(least, hops) })
		return least >= 50
	})
	before := c.hops()
	harness.Eventually(t, "the chains go on", func() bool { return c.hops() > before })
}

// mustStandStill fails the test if a chain still forks. A living one would fork
// many times while a program starts and ends.
func (c *chainPage) mustStandStill(t *testing.T) {
	t.Helper()
	before := c.hops()
	for range 20 {
		_ = harness.Find("nothing")
	}
	if after := c.hops(); after != before {
		harness.Breach(t, "the chains hop on: %d hops, then %d", before, after)
	}
}
