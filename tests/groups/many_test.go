//go:build linux

package groups

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// held is what a process holds of the machine.
type held struct{ files, threads, kilobytes int }

// holds says what a process holds. files is 0 if this user may not see that, as
// of the init.
func holds(t *testing.T, pid int) (h held) {
	t.Helper()
	if list, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid)); err == nil {
		h.files = len(list)
	}
	for line := range strings.Lines(harness.Read(t, fmt.Sprintf("/proc/%d/status", pid))) {
		fields := strings.Fields(line)
		switch fields[0] {
		case "Threads:":
			h.threads, _ = strconv.Atoi(fields[1])
		case "RssAnon:":
			h.kilobytes, _ = strconv.Atoi(fields[1])
		}
	}
	return h
}

// calls is how many calls a long test makes. SIDECAR_GROUP_CALLS sets it: with
// 10000, each takes minutes.
func calls(t *testing.T, usual, short int) int {
	t.Helper()
	number := usual
	if testing.Short() {
		number = short
	}
	if given := os.Getenv("SIDECAR_GROUP_CALLS"); given != "" {
		var err error
		number, err = strconv.Atoi(given)
		harness.Must(t, err)
	}
	return number
}

// Any number of calls, one after the other, leaves no descriptor, thread or
// memory behind: neither in the sidecar nor in the init.
func TestGroup_ManyCallsLeaveNothing(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, e *harness.Editor, _ harness.Machine) {
		out, _ := run(e, "agent", "echo $PPID")
		init, err := strconv.Atoi(out)
		harness.Must(t, err)
		one := func(i int) {
			s := e.Spawn(protocol.SpawnParams{
				Kind: protocol.Tool, Group: "agent", Pipe: i%2 == 0,
				Command: fmt.Sprintf("echo %d $PPID; exit %d", i, i%100),
			})
			if exit := s.Exit(); exit.ExitCode == nil || *exit.ExitCode != i%100 ||
				strings.TrimSpace(s.Output()) != fmt.Sprintf("%d %d", i, init) {
				t.Fatalf("call %d: %+v, it printed %q, and the init was %d", i, exit, s.Output(), init)
			}
			s.Close(0)
		}
		for i := range 100 {
			one(i)
		}
		sidecar, initially := holds(t, e.Process()), holds(t, init)
		for i := range calls(t, 1000, 150) {
			one(i)
		}
		for name, process := range map[string]struct {
			pid    int
			before held
		}{"sidecar": {e.Process(), sidecar}, "init": {init, initially}} {
			before, after := process.before, held{}
			harness.Eventually(t, name+" gives descriptors back", func() bool {
				after = holds(t, process.pid)
				return after.files <= before.files+3
			})
			t.Logf("%s: %+v before, %+v after", name, before, after)
			if after.threads > before.threads+4 || after.kilobytes > before.kilobytes+8<<10 {
				t.Errorf("%s: %+v before, %+v after", name, before, after)
			}
		}
	})
}

// endings are the ways in which a sidecar or a group ends.
var endings = map[string]func(t *testing.T, e *harness.Editor, init int){
	"shutdown": func(_ *testing.T, e *harness.Editor, _ int) {
		_, _ = harness.Try(e, protocol.Shutdown, protocol.Empty{})
	},
	"hang-up": func(_ *testing.T, e *harness.Editor, _ int) { _ = e.HangUp() },
	"SIGTERM": func(t *testing.T, e *harness.Editor, _ int) { harness.Must(t, unix.Kill(e.Process(), unix.SIGTERM)) },
	"SIGKILL": func(t *testing.T, e *harness.Editor, _ int) { harness.Must(t, unix.Kill(e.Process(), unix.SIGKILL)) },
	"SIGKILL of the init": func(t *testing.T, _ *harness.Editor, init int) {
		harness.Must(t, unix.Kill(init, unix.SIGKILL))
	},
	"SIGSTOP of the init": func(t *testing.T, _ *harness.Editor, init int) {
		harness.Must(t, unix.Kill(init, unix.SIGSTOP))
	},
	"group/close": func(_ *testing.T, e *harness.Editor, _ int) {
		_, _ = harness.Try(e, protocol.CloseGroup, protocol.CloseGroupParams{Group: "agent"})
	},
}

// An end at any step of sessions that start, run and end leaves nothing.
func TestGroup_AnEndAtAnyStepLeavesNothing(t *testing.T) {
	t.Parallel()
	harness.RequireSandbox(t)
	rounds := 6
	if testing.Short() {
		rounds = 1
	}
	_, random := harness.Generated(t, 1, 5)
	var after [][]int
	for range len(endings) * len(machines(t)) * rounds {
		after = append(after, []int{random.IntN(30), random.IntN(1 << 30)})
	}
	for i, name := range slices.Sorted(maps.Keys(endings)) {
		end, machines := endings[name], machines(t)
		for j, machine := range machines {
			steps := after[:rounds]
			after = after[rounds:]
			if !harness.Turn(t, i+j, len(machines)) {
				continue
			}
			t.Run(name+", "+machine.Name, func(t *testing.T) {
				t.Parallel()
				for _, step := range steps {
					endAt(t, machine, step[0], rand.New(rand.NewPCG(uint64(step[1]), 0)), end)
				}
			})
		}
	}
}

// endAt ends a sidecar or a group after so many answers to thirty sessions at
// once.
func endAt(
	t *testing.T, machine harness.Machine, step int, random *rand.Rand, end func(*testing.T, *harness.Editor, int),
) {
	t.Helper()
	w := harness.NewWorldOutsideDefaults(t)
	e := harness.Start(t, w, harness.Options{Settings: settings(nil), Wrap: machine.Wrap})
	out, _ := run(e, "agent", "echo $PPID; echo $$ >>pids")
	init, err := strconv.Atoi(out)
	harness.Must(t, err)
	sidecar := e.Process()
	var running sync.WaitGroup
	reached := make(chan struct{}, 30)
	for range 30 {
		command := []string{
			"sleep 1000 &", "(setsid sleep 1000 &) &", "exec sleep 1000", "sleep 1000 & sleep 1000", "true",
			"setsid sleep 1000",
		}[random.IntN(6)]
		params := protocol.SpawnParams{
			Kind: protocol.Tool, Group: "agent", Pipe: random.IntN(2) == 0, Cwd: w.Project,
			Command: fmt.Sprintf("echo $$ >>pids; %s", command),
		}
		running.Go(func() {
			_, _ = harness.Try(e, protocol.Spawn, params)
			reached <- struct{}{}
		})
	}
	for range step {
		<-reached
	}
	end(t, e, init)
	running.Wait()
	_, _ = harness.Try(e, protocol.CloseGroup, protocol.CloseGroupParams{Group: "agent"})
	_ = e.HangUp()
	var pids []int
	for _, field := range strings.Fields(harness.Read(t, w.ProjectPath("pids"))) {
		pid, err := strconv.Atoi(field)
		harness.Must(t, err)
		pids = append(pids, pid)
	}
	left := func() []int { return inside(t, append(slices.Clone(pids), init), w.Project) }
	harness.MustEnd(t, fmt.Sprintf("everything ends, after %d answers", step), func() bool { return len(left()) == 0 })
	harness.NoTrace(t, w, sidecar)
}

// inside are the living processes among some, and those whose working directory
// is a directory.
func inside(t *testing.T, pids []int, dir string) (list []int) {
	t.Helper()
	list = slices.DeleteFunc(pids, func(pid int) bool { return !harness.Alive(pid) })
	all, err := os.ReadDir("/proc")
	harness.Must(t, err)
	for _, entry := range all {
		if cwd, err := os.Readlink("/proc/" + entry.Name() + "/cwd"); err == nil && cwd == dir {
			pid, _ := strconv.Atoi(entry.Name())
			list = append(list, pid)
		}
	}
	return list
}
