//go:build linux

package lifetime

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/client"
	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// toldLimits are the limits that a sidecar has told of.
type toldLimits struct {
	mu   sync.Mutex
	list []protocol.LimitParams
}

func listenForLimits(e *harness.Editor) *toldLimits {
	l := &toldLimits{}
	client.On(e.Client, protocol.LimitReached, func(p protocol.LimitParams) {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.list = append(l.list, p)
	})
	return l
}

func (l *toldLimits) all() []protocol.LimitParams {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.list)
}

// A session has as many processes and threads as its settings say, whatever
// other sessions have. Nothing limits root's, and the reply says so.
func TestLimits_BoundTheProcessesOfOneSession(t *testing.T) {
	t.Parallel()
	const most = 60
	w := harness.NewWorld(t)
	e := harness.Start(t, w, harness.Options{Settings: harness.Settings(harness.Sandbox{
		"enabled": true, "limits": map[string]any{"processes": most},
	})})
	limits := listenForLimits(e)
	victim := filepath.Join(w.Project, "victim")
	harness.Victim(t, "tests/victim", victim)
	run := func(args ...string) (*harness.Session, int) {
		return e.Run(protocol.SpawnParams{Command: victim, Args: args})
	}
	full := e.Spawn(protocol.SpawnParams{
		Kind: protocol.Tool, Command: victim, Args: []string{"storm", strconv.Itoa(most + 20)},
	})
	mechanism := full.Sandbox.Protections["limits"].Mechanism
	limited := strings.Contains(mechanism, "RLIMIT_NPROC") || strings.Contains(mechanism, "pids.max")
	if able := os.Geteuid() != 0 && harness.Namespaces(t); able && !limited {
		t.Errorf("reply: %+v", full.Sandbox.Protections["limits"])
	}
	if limited {
		full.Await("full")
	}
	// The control: another session has all of its own.
	if s, status := run("crowd", strconv.Itoa(most-20)); status != 0 {
		t.Errorf("within the limit: status %d\n%s", status, s.Output())
	}
	if s, status := run("crowd", strconv.Itoa(most+20)); (status == 0) == limited || limited &&
		!strings.Contains(s.Output(), "refused: crowd: EAGAIN") {
		t.Errorf("beyond the limit: status %d\n%s", status, s.Output())
	}
	if limited {
		s, _ := run("storm-threads", strconv.Itoa(most+20))
		told := slices.DeleteFunc(limits.all(), func(l protocol.LimitParams) bool { return l.SessionID != s.SessionID })
		if len(told) != 1 || told[0].Setting != "limits.processes" {
			t.Errorf("told: %+v", told)
		}
		if !strings.Contains(s.Output(), "failed to create new OS thread") {
			t.Errorf("threads beyond the limit:\n%s", s.Output())
		}
		if hints := strings.Join(s.Exit().Hints, "\n"); !strings.Contains(hints, `"limits.processes"`) {
			t.Errorf("hints: %q", hints)
		}
	}
	if result := full.Close(0); result.Remaining != 0 {
		harness.Breach(t, "close says %+v", result)
	}
}

// If no memory is left, the kernel ends a session before the editor, and the
// session cannot change that.
func TestLimits_TheKernelEndsASessionBeforeTheEditor(t *testing.T) {
	t.Parallel()
	harness.Require(t, "filesystem")
	text, err := os.ReadFile("/proc/self/oom_score_adj")
	harness.Must(t, err)
	own, err := strconv.Atoi(strings.TrimSpace(string(text)))
	harness.Must(t, err)
	for name, settings := range map[string]string{"sandboxed": harness.Defaults(nil), "unsandboxed": harness.Off()} {
		e := harness.Start(t, harness.NewWorld(t), harness.Options{Settings: settings})
		const file = "/proc/self/oom_score_adj"
		output, _ := e.Tool(fmt.Sprintf("cat %s; echo %d 2>/dev/null >%s || echo refused; cat %s", file,
			own+1, file, file))
		want := fmt.Sprintf("%d\nrefused\n%[1]d\n", min(own+500, 1000))
		if name == "unsandboxed" { // the control
			want = fmt.Sprintf("%d\n%d\n", own, own+1)
		}
		if output != want {
			t.Errorf("%s: %q, want %q", name, output, want)
		}
	}
}

// A session has no more memory than its settings say, and its end harms no other
// session. A tool ends as a whole; of a terminal the shell is left.
func TestLimits_BoundTheMemoryOfOneSession(t *testing.T) {
	t.Parallel()
	e := harness.Start(t, harness.NewWorld(t), harness.Options{Settings: harness.Settings(harness.Sandbox{
		"enabled": true, "limits": map[string]any{"memory": "64M"},
	})})
	other := e.Shell()
	other.Type("echo before-$((1+1))\n")
	other.Await("before-2")
	limits := other.Sandbox.Protections["limits"]
	limited := strings.Contains(limits.Mechanism, "memory.max")
	if says := strings.Contains(limits.Detail, "memory is not limited"); says == limited {
		t.Errorf("reply: %+v", limits)
	}
	// The control, or what an unlimited session can do: dd has one block in memory.
	const take = "dd if=/dev/zero of=/dev/null count=1 status=none bs="
	if _, status := e.Tool(take + "8M"); status != 0 {
		t.Errorf("within the limit: status %d", status)
	}
	output, status := e.Tool(take + "200M; echo survived")
	if survived := strings.Contains(output, "survived"); survived == limited {
		t.Errorf("beyond the limit of %+v: status %d, %q", limits, status, output)
	}
	other.Type(take + "200M; echo after-$((1+1))\n")
	other.Await("after-2")
}
