//go:build linux

package lifetime

import (
	"fmt"
	"os"
	"os/exec"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// roundLine is what a session of a round runs, and also the process outside:
// their names are equal.
func roundLine(e *harness.Editor) string {
	return "sleep 301 & " + away(e) + "sleep 301 & echo up; wait"
}

// A thousand sessions come and go in one sidecar, sandboxed tools and
// unsandboxed terminals. Afterwards the sidecar holds no more than before.
// Processes outside that look the same live on.
func TestAThousandRoundsLeaveNothing(t *testing.T) {
	t.Parallel()
	modes := trackingModes(t)
	for i, mode := range modes {
		rounds := 1000
		if i > 0 {
			rounds = 250 // these take longer
		}
		if testing.Short() {
			rounds /= 10
		}
		rounds = roundsOf(t, rounds, i, modes)
		t.Run(mode.name, func(t *testing.T) {
			t.Parallel()
			comeAndGo(t, rounds, mode.wrap(t))
		})
	}
}

func comeAndGo(t *testing.T, rounds int, wrap func(*exec.Cmd)) {
	t.Helper()
	const atOnce = 4
	w := harness.NewWorld(t)
	e, sidecar := reaped(t, w, harness.Defaults(harness.Sandbox{"apply_to": "tool"}), wrap)
	kinds := []protocol.Kind{protocol.Tool, protocol.Terminal}
	for _, kind := range kinds {
		s := e.Spawn(protocol.SpawnParams{Kind: kind, Command: roundLine(e)})
		t.Logf("%s: %s, guarantee %t", kind, s.Tracking.Mechanism, s.Tracking.Guarantee)
		s.Close(0)
	}
	lookAlikes := []int{startLookAlike(t, e, nil), startLookAlike(t, e, oldTerminal(t, e))}

	before, begun := take(t, sidecar, w), time.Now()
	var workers sync.WaitGroup
	var killed, late atomic.Int64
	for worker := range atOnce {
		workers.Go(func() {
			for round := worker; round < rounds && !t.Failed(); round += atOnce {
				s := e.Spawn(protocol.SpawnParams{Kind: kinds[round%2], Command: roundLine(e)})
				if round%3 > 0 { // the others are closed in the middle of their start
					s.Await("up")
				}
				closed := s.Close(0)
				// The kernel of a busy machine may take long to end a process. It
				// must be gone in the end.
				if closed.Remaining != 0 && late.Add(1) > int64(max(1, rounds/50)) {
					t.Errorf("round %d: closed with %+v, the %dth such end", round, closed, late.Load())
				}
				killed.Add(int64(closed.Killed))
			}
		})
	}
	workers.Wait()
	t.Logf("%d rounds, %d processes killed, %d late, in %d ms", rounds, killed.Load(), late.Load(),
		time.Since(begun).Milliseconds())
	after := take(t, sidecar, w)
	harness.Eventually(t, "what a round needs is given back", func() bool {
		after = take(t, sidecar, w)
		return after.leaves(before) || t.Failed()
	})
	t.Logf("before: %v", before)
	t.Logf("after:  %v", after)
	for _, pid := range lookAlikes {
		if !harness.Alive(pid) {
			harness.Breach(t, "process %d, which only looks like a session's, is dead", pid)
		}
	}
	mustLeaveNobody(t, e.Client)
	harness.NoTrace(t, w, sidecar)
}

// inventory is what a sidecar holds at a moment.
type inventory struct {
	cgroups, state, descriptors, children, zombies, threads int
}

func take(t *testing.T, sidecar int, w *harness.World) inventory {
	t.Helper()
	var got inventory
	got.cgroups = len(w.Cgroups(t, sidecar))
	entries, _ := os.ReadDir(w.State())
	descriptors, _ := os.ReadDir(fmt.Sprintf("/proc/%d/fd", sidecar))
	threads, _ := os.ReadDir(fmt.Sprintf("/proc/%d/task", sidecar))
	got.state, got.descriptors, got.threads = len(entries), len(descriptors), len(threads)
	for _, state := range children(sidecar) {
		got.children++
		if state == "Z" {
			got.zombies++
		}
	}
	return got
}

// leaves reports whether a sidecar holds no more than before. Threads do not
// count, because Go keeps those that it once needed.
func (i inventory) leaves(before inventory) bool {
	return i.cgroups <= before.cgroups && i.state <= before.state && i.descriptors <= before.descriptors &&
		i.children <= before.children && i.zombies == 0
}

func (i inventory) String() string {
	return fmt.Sprintf("%d cgroups, %d files of state, %d descriptors, %d children, %d zombies, %d threads",
		i.cgroups, i.state, i.descriptors, i.children, i.zombies, i.threads)
}

// oldTerminal opens a terminal with the name that a session's had before.
func oldTerminal(t *testing.T, e *harness.Editor) (last *os.File) {
	t.Helper()
	s := e.Spawn(protocol.SpawnParams{Kind: protocol.Terminal, Command: "tty; sleep 301"})
	name := s.Await(`(/dev/pts/\d+)`)[1]
	s.Close(0)
	for range 100 { // another test may have taken it meanwhile, and give it back
		master, terminal, err := pty.Open()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			master.Close()
			terminal.Close()
		})
		if last = terminal; terminal.Name() == name {
			return terminal
		}
	}
	t.Logf("%s was not to be had again", name)
	return last
}

// startLookAlike runs the same as a session, in the same directory, with or
// without a terminal.
func startLookAlike(t *testing.T, e *harness.Editor, terminal *os.File) int {
	t.Helper()
	command := exec.Command("/bin/sh", "-c", roundLine(e))
	command.Dir, command.Env = e.World.Project, harness.Environ(e.World)
	command.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if terminal != nil {
		command.Stdin, command.Stdout, command.Stderr = terminal, terminal, terminal
		command.SysProcAttr.Setctty = true
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for pid := range children(command.Process.Pid) {
			_ = unix.Kill(pid, unix.SIGKILL)
		}
		_ = command.Process.Kill()
		_ = command.Wait()
	})
	return command.Process.Pid
}
