//go:build linux

package lifetime

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/deadline"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// narrowMemory starts a sidecar in a cgroup with so much memory and no swap, below
// this process's own. Nobody else notices what happens in it.
func narrowMemory(t *testing.T, megabytes int) func(*exec.Cmd) {
	t.Helper()
	if os.Geteuid() != 0 {
		harness.Skip(t, "root", "only root can make a cgroup with a limit of memory")
	}
	type limit struct{ parent, file, swap string }
	var limits []limit
	for line := range strings.Lines(harness.Read(t, "/proc/self/cgroup")) {
		switch fields := strings.SplitN(strings.TrimSpace(line), ":", 3); {
		case len(fields) == 3 && fields[1] == "memory":
			limits = append(limits, limit{
				"/sys/fs/cgroup/memory" + fields[2], "memory.limit_in_bytes", "memory.memsw.limit_in_bytes",
			})
		case len(fields) == 3 && fields[0] == "0":
			limits = append(limits, limit{"/sys/fs/cgroup" + fields[2], "memory.max", "memory.swap.max"})
		}
	}
	failures := []error{errors.New("no cgroup with a limit of memory can be made")}
	for _, l := range limits {
		dir, err := os.MkdirTemp(l.parent, "sidecar-storm-")
		if err != nil {
			failures = append(failures, err)
			continue
		}
		t.Cleanup(func() {
			harness.Eventually(t, "the cgroup is empty", func() bool { return os.Remove(dir) == nil })
		})
		set := func(file string, value int) error {
			f, err := os.OpenFile(filepath.Join(dir, file), os.O_WRONLY, 0)
			if err != nil {
				return err
			}
			_, err = fmt.Fprint(f, value)
			return errors.Join(err, f.Close())
		}
		if err := set(l.file, megabytes<<20); err != nil {
			failures = append(failures, err)
			continue
		}
		swap := 0
		if strings.Contains(l.swap, "memsw") { // both together
			swap = megabytes << 20
		}
		_ = set(l.swap, swap) // missing if swap is not accounted
		return wrapped(t, "memory_controller", "/bin/sh", "-c", `echo $$ >"$1"/cgroup.procs && shift && exec "$@"`,
			"sh", dir)
	}
	harness.Skip(t, "memory_controller", errors.Join(failures...).Error())
	return nil
}

// If sessions take all memory that there is, the kernel ends them, and neither
// the sidecar nor the sessions that take little. Nothing limits their memory
// here: what decides is who is ended first. This test is not parallel, because
// it measures time.
func TestStorm_TheKernelEndsWhoTakesTheMemory(t *testing.T) {
	harness.Require(t, "filesystem")
	// What takes long is to wait for echoes among so many that take memory.
	many := memoryStorm{kind: "private", most: 1024, sessions: fifty, each: 64}
	if !harness.Turn(t, 0, 2) {
		many.most, many.sessions = 512, 20
	}
	for _, storm := range []memoryStorm{
		{kind: "private", most: 256, sessions: 3, each: 1024},
		{kind: "shared", most: 256, sessions: 3, each: 1024},
		{kind: "memfd", most: 256, sessions: 3, each: 1024, unseen: true},
		many,
	} {
		// One after another: two would take twice the memory.
		t.Run(fmt.Sprintf("%d sessions, %s memory", storm.sessions, storm.kind), storm.mustEnd)
	}
}

// fifty is how many sessions a window has that has very many.
const fifty = 50

// memoryStorm is sessions that take more memory than a sidecar has together with
// them.
type memoryStorm struct {
	kind       string // see the victim's action "take"
	most, each int    // in MB
	sessions   int
	// unseen memory is in no process. The kernel ends any session then, and the
	// sidecar last.
	unseen bool
}

func (m memoryStorm) mustEnd(t *testing.T) {
	w := harness.NewWorld(t)
	e := harness.Start(t, w, harness.Options{Settings: harness.Defaults(nil), Wrap: narrowMemory(t, m.most)})
	victim := filepath.Join(w.Project, "victim")
	harness.Victim(t, "tests/victim", victim)
	other := e.Shell()
	// Each takes and is ended, again and again, until its session is closed.
	start, line := startTogether(t, w)
	line += fmt.Sprintf("while :; do %s take %s %d; echo ended-$?; sleep 0.5; done", victim, m.kind, m.each)
	var storms []*harness.Session
	for range m.sessions {
		storms = append(storms, e.Spawn(protocol.SpawnParams{Kind: protocol.Tool, Command: line}))
	}
	before := mustEcho(t, e, other, "calm")
	start(m.sessions)
	harness.Eventually(t, "the kernel has ended a process", func() bool {
		listed := harness.Call(e, protocol.List, protocol.Empty{}).Sessions
		return printing(storms, "ended-137") > 0 ||
			slices.ContainsFunc(listed, func(s protocol.SessionInfo) bool { return !s.Running })
	})
	if !m.unseen {
		during := mustEcho(t, e, other, "storm")
		t.Logf("the slowest echo took %s during the storm, and %s before", during, before)
	}
	mustCloseSoon(t, e, storms)
	if m.unseen {
		other = e.Shell()
	}
	mustEcho(t, e, other, "after")
}

// printing is how many sessions have printed a text.
func printing(sessions []*harness.Session, text string) (count int) {
	for _, s := range sessions {
		if strings.Contains(s.Output(), text) {
			count++
		}
	}
	return count
}

// startTogether returns the begin of a command line that waits, and a function
// that lets so many of those sessions go on.
func startTogether(t *testing.T, w *harness.World) (start func(sessions int), line string) {
	t.Helper()
	path := w.ProjectPath("start")
	harness.Must(t, unix.Mkfifo(path, 0o600))
	fifo, err := os.OpenFile(path, os.O_RDWR, 0) // does not wait for a reader
	harness.Must(t, err)
	t.Cleanup(func() { _ = fifo.Close() })
	return func(sessions int) {
		_, err := fifo.WriteString(strings.Repeat("\n", sessions))
		harness.Must(t, err)
	}, "read start <start; "
}

// echoes is how many lines mustEcho types. While there is no memory, each costs
// the kernel seconds of all processors.
func echoes() int {
	if testing.Short() {
		return 4
	}
	return 10
}

// mustEcho types some lines into a shell, and returns how long the slowest answer
// took, apart from the time in which the sidecar and the shell waited for a
// processor. Half of them take at most 2 s more than twice what they take in a
// terminal that has no sidecar: on a busy machine the kernel's own work for
// terminals waits, too. Where no memory is left, all wait for the kernel to end
// somebody.
func mustEcho(t *testing.T, e *harness.Editor, shell *harness.Session, word string) (longest time.Duration) {
	t.Helper()
	plain := harness.StartTerminal(t, exec.Command("/bin/sh"))
	var took, without []time.Duration
	for i := range echoes() {
		line, answer := fmt.Sprintf("echo %s-$((%d+1))\n", word, i), fmt.Sprintf("%s-%d", word, i+1)
		took = append(took, deadline.TookBy(func() {
			shell.Type(line)
			shell.Await(answer)
		}, e.Process(), shell.PID))
		without = append(without, deadline.TookBy(func() {
			plain.Type(line)
			plain.Await(answer)
		}, plain.Command.Process.Pid))
	}
	slices.Sort(took)
	slices.Sort(without)
	if half := len(took) / 2; took[half] > 2*time.Second+2*without[half] {
		t.Errorf("echoes took %s, without a sidecar %s", took, without)
	}
	return took[len(took)-1]
}

// mustCloseSoon closes sessions at once. All are over long before the sidecar
// would give up, apart from the time in which it waited for a processor.
func mustCloseSoon(t *testing.T, e *harness.Editor, sessions []*harness.Session) {
	t.Helper()
	took := deadline.TookBy(func() {
		var closing sync.WaitGroup
		for _, s := range sessions {
			closing.Go(func() {
				grace := 0
				// A session that the kernel has ended is not known any more.
				params := protocol.CloseParams{SessionID: s.SessionID, GraceMs: &grace}
				result, err := harness.Try(e, protocol.Close, params)
				if err == nil && result.Remaining != 0 {
					harness.Breach(t, "close says %+v", result)
				}
			})
		}
		closing.Wait()
	}, e.Process())
	if took > 8*time.Second {
		t.Errorf("%d sessions took %s to close", len(sessions), took)
	}
	t.Logf("%d sessions are closed in %s", len(sessions), took)
}
