//go:build linux

package groups

import (
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/client"
	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// reached are the limits of which a sidecar has reported that they were reached.
type reached struct {
	mu   sync.Mutex // guards list
	list []protocol.LimitParams
}

// recordLimits gathers them from now on.
func recordLimits(e *harness.Editor) *reached {
	r := &reached{}
	client.On(e.Client, protocol.LimitReached, func(p protocol.LimitParams) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.list = append(r.list, p)
	})
	return r
}

// of lists those of one session so far.
func (r *reached) of(s *harness.Session) (list []protocol.LimitParams) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, p := range r.list {
		if p.SessionID == s.SessionID {
			list = append(list, p)
		}
	}
	return list
}

// most is how many processes a call tries to have at once.
const most = 80

// fill starts processes until one is refused, and keeps them.
var fill = fmt.Sprintf(`/usr/bin/python3 -c '
import os, signal
made = 0
try:
    while made < %d:
        if os.fork() == 0: signal.pause()
        made += 1
except OSError as e: print("python3: fork:", e.strerror, flush=True)
print("filled", made, flush=True); signal.pause()'`, most)

// When a call has taken all processes of its group, the next call does not start,
// and its error names the limit. Each running session of the group hears of the
// limit, if the kernel reports it. Otherwise the one that printed it does. Another
// group of the project has all of its processes, and hears nothing.
func TestGroup_AReachedLimitIsNamed(t *testing.T) {
	t.Parallel()
	harness.RequireSandbox(t)
	for _, machine := range inTurn(t, machines(t)) {
		t.Run(machine.Name, func(t *testing.T) {
			t.Parallel()
			e := harness.Start(t, harness.NewWorldOutsideDefaults(t), harness.Options{
				Settings: settings(harness.Sandbox{"limits": map[string]any{"processes": 40}}), Wrap: machine.Wrap,
			})
			limits := recordLimits(e)
			spawn := func(group, line string) *harness.Session {
				return e.Spawn(protocol.SpawnParams{Kind: protocol.Tool, Group: group, Pipe: true, Command: line})
			}
			const wait = "echo up; exec sleep 1000"
			waiting, elsewhere := spawn("agent", wait), spawn("other", wait)
			waiting.Await("up")
			elsewhere.Await("up")
			init, _ := run(e, "agent", "echo $PPID")
			filling := spawn("agent", fill)
			made, err := strconv.Atoi(filling.Await(`filled (\d+)`)[1])
			harness.Must(t, err)
			mechanism := filling.Sandbox.Protections["limits"].Mechanism
			kernel := strings.Contains(mechanism, "pids.max")
			limited := kernel || strings.Contains(mechanism, "RLIMIT_NPROC")
			t.Logf("%d processes by %q", made, mechanism)
			if (made < most) != limited {
				t.Errorf("%d processes could be started, and the limit holds by %q", made, mechanism)
			}
			for range 3 {
				result, err := harness.Try(e, protocol.Spawn, protocol.SpawnParams{
					Kind: protocol.Tool, Group: "agent", Command: "true", Cwd: e.World.Project,
				})
				switch {
				case err == nil && limited:
					t.Errorf("the next call has started beside %d processes", made)
				case err == nil:
					e.Session(result).Exit()
				case !limited || !strings.Contains(err.Error(), "limits.processes"):
					t.Errorf("the next call could not be started: %v", err)
				}
			}
			out, exit := run(e, "other", "for i in 1 2 3 4 5 6 7 8 9 10; do sleep 1000 & done; echo has ten")
			if out != "has ten" || exit.Background != 10 {
				t.Errorf("another group: %q, %+v", out, exit)
			}
			if limited {
				mustHear(t, limits, filling, kernel)
			}
			if kernel {
				mustHear(t, limits, waiting, true)
			}
			filling.Close(0)
			if after, _ := run(e, "agent", "echo $PPID"); after != init {
				t.Errorf("the init was %s, and is %s", init, after)
			}
			if got := limits.of(elsewhere); len(got) > 0 {
				t.Errorf("a session of another group hears of %+v", got)
			}
			if got := limits.of(waiting); !kernel && len(got) > 0 {
				t.Errorf("a session that has printed nothing hears of %+v", got)
			}
			if !harness.Alive(waiting.PID) || !harness.Alive(elsewhere.PID) {
				t.Error("a session has ended by the limit")
			}
		})
	}
}

// mustHear waits until a session has heard that its limit of processes was reached:
// once, from the kernel or by what it has printed.
func mustHear(t *testing.T, limits *reached, s *harness.Session, kernel bool) {
	t.Helper()
	harness.Eventually(t, "session "+s.SessionID+" hears of its limit", func() bool { return len(limits.of(s)) > 0 })
	got := limits.of(s)
	if len(got) != 1 || got[0].Setting != "limits.processes" || (got[0].Source == "") != kernel {
		t.Errorf("by the kernel %t: session %s hears of %+v", kernel, s.SessionID, got)
	}
}
