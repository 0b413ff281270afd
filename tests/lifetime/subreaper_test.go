//go:build linux

package lifetime

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// Without cgroups the same escapees die by the same endings, because a
// subreaper holds them. That is no guarantee against a session that attacks its
// subreaper, and the reply says so. These do not attack it.
func TestNothingOutlivesItsSession_WithoutCgroups(t *testing.T) {
	t.Parallel()
	without := harness.WithoutCgroups(t)
	// Each ending has the other sandbox than in the test with cgroups.
	everyEnding(t, 2, func(t *testing.T, ending ending, settings string, kind protocol.Kind) {
		b := ending.mustEnd(t, settings, kind, without)
		if got := b.Session.Tracking.Mechanism; got != "subreaper" {
			t.Errorf("tracked by %s", got)
		}
		b.AwaitDead(t)
	})
}

// Without a guarantee, the reply says what is missing and how to get it.
func TestAWarningSaysWhatIsMissingWithoutCgroups(t *testing.T) {
	t.Parallel()
	e := harness.Start(t, harness.NewWorld(t), harness.Options{
		Settings: harness.Off(), Wrap: harness.WithoutCgroups(t),
	})
	shown := e.Hello.Capabilities.Enforcement["process_tracking"]
	if shown.Status != protocol.Degraded || shown.Mechanism != "subreaper" || shown.Detail == "" || shown.Fix == "" {
		t.Errorf("initialize says %+v", shown)
	}
	s := e.Spawn(protocol.SpawnParams{Kind: protocol.Tool, Command: "true"})
	if s.Tracking.Guarantee || !slices.ContainsFunc(s.Sandbox.Warnings, func(warning string) bool {
		return strings.Contains(warning, shown.Detail) && strings.Contains(warning, shown.Fix)
	}) {
		t.Errorf("tracking %+v, warnings %q", s.Tracking, s.Sandbox.Warnings)
	}
}

// Chains at full speed die in every tracking mode that promises it: the session
// cannot start processes while it is killed.
func TestChainsAtFullSpeedDie_WithoutCgroups(t *testing.T) {
	t.Parallel()
	without := harness.WithoutCgroups(t)
	for _, ending := range chainEndings {
		t.Run(ending.name, func(t *testing.T) {
			harness.Require(t, "filesystem")
			chainsMustDie(t, harness.Defaults(nil), ending, without)
		})
	}
}

// If a subreaper is killed, its session's leader and all processes that have
// kept the session id are killed too. The log says so.
func TestAKilledSubreaperEndsItsSession(t *testing.T) {
	t.Parallel()
	e := harness.Start(t, harness.NewWorld(t), harness.Options{
		Settings: harness.Off(), Wrap: harness.WithoutCgroups(t),
	})
	b := harness.StartEscapees(t, e, protocol.Tool)
	subreapers := harness.Subreapers(e.Process())
	if len(subreapers) != 1 {
		t.Fatalf("subreapers %v, expected one", subreapers)
	}
	kill(t, subreapers[0], unix.SIGKILL)
	if exit := b.Session.Exit(); exit.Signal == nil || *exit.Signal != "SIGKILL" {
		t.Errorf("terminal/exited says %+v", exit)
	}
	b.AwaitSessionDead(t)
	e.Log.Await(t, "subreaper of a session has died")
	if _, status := e.Tool("true"); status != 0 {
		t.Error("the sidecar does not start another session")
	}
}

// If subreaper and sidecar are killed at once, the domain killer ends the whole
// sandboxed session, including processes in a session of their own.
// TestAProcessThatKillsItsSubreaperAndTheSidecarEscapes shows what happens
// without a domain killer.
func TestAKilledSubreaperAndSidecarLeaveNothingOfASandboxedSession(t *testing.T) {
	t.Parallel()
	harness.Require(t, "filesystem")
	w := harness.NewWorld(t)
	e := harness.Start(t, w, harness.Options{Settings: harness.Defaults(nil), Wrap: harness.WithoutCgroups(t)})
	s := e.Spawn(protocol.SpawnParams{Kind: protocol.Tool, Command: ownSession + "echo ready; exec sleep 1000"})
	if !s.Tracking.Guarantee {
		harness.Skip(t, "process_tracking", s.Tracking.Mechanism+" gives no guarantee")
	}
	s.Await("ready")
	away := ownSessionPID(t, w)
	subreaper, sidecar := subreaperOf(t, e, s), e.Process()
	// Neither may react to the other's end, and the sidecar continues a stopped
	// subreaper.
	harness.Stop(t, sidecar)
	harness.Stop(t, subreaper)
	for _, pid := range []int{subreaper, sidecar} {
		kill(t, pid, unix.SIGKILL)
	}
	harness.MustEnd(t, "all of the session is dead", func() bool {
		return !harness.Alive(away) && !harness.Alive(s.PID)
	})
}

// subreaperOf is a session's subreaper, which is not the only one if a stage is
// on standby.
func subreaperOf(t *testing.T, e *harness.Editor, s *harness.Session) int {
	t.Helper()
	subreapers := slices.DeleteFunc(harness.Subreapers(e.Process()), func(subreaper int) bool {
		_, is := children(subreaper)[s.PID]
		return !is
	})
	if len(subreapers) != 1 {
		t.Fatalf("subreapers %v of the session, expected one", subreapers)
	}
	return subreapers[0]
}

// An unconfined session can stop its subreaper, which does not help it.
func TestAStoppedSubreaperEndsItsSession(t *testing.T) {
	t.Parallel()
	e := harness.Start(t, harness.NewWorld(t), harness.Options{
		Settings: harness.Off(), Wrap: harness.WithoutCgroups(t),
	})
	s := e.Spawn(protocol.SpawnParams{
		Kind:    protocol.Tool,
		Command: `kill -STOP $PPID; setsid sleep 1000 & echo stopped; exec sleep 1000`,
	})
	s.Await("stopped")
	if result := s.Close(0); result.Remaining != 0 || result.Killed != 2 {
		harness.Breach(t, "close says %+v", result)
	}
}

// A sandboxed session cannot signal its subreaper and its domain killer, which
// processes outside can.
func TestASandboxedSessionCannotReachTheProcessesThatEndIt(t *testing.T) {
	t.Parallel()
	harness.Require(t, "filesystem")
	e := harness.Start(t, harness.NewWorld(t),
		harness.Options{Settings: harness.Defaults(nil), Wrap: harness.WithoutCgroups(t)})
	s := e.Spawn(protocol.SpawnParams{Kind: protocol.Terminal})
	if !s.Tracking.Guarantee {
		harness.Skip(t, "process_tracking", s.Tracking.Mechanism+" gives no guarantee")
	}
	subreaper := subreaperOf(t, e, s)
	domainKillers := harness.DomainKillers(subreaper)
	if len(domainKillers) != 1 {
		t.Fatalf("domain killers %v, expected one", domainKillers)
	}
	// Signal 0 sends nothing, and tells whether an ancestor lives: the subreaper is
	// one.
	s.Type(fmt.Sprintf("for p in %d %d; do for s in STOP TERM KILL; do kill -$s $p 2>/dev/null && echo rea''ched; done; "+
		"done; kill -0 %[2]d 2>/dev/null && echo rea''ched; echo tri''ed\n", subreaper, domainKillers[0]))
	if said := s.Await(`reached|tried`); said[0] != "tried" {
		harness.Breach(t, "the session can signal who is to end it")
	}
	// The control: a process outside can kill the domain killer, and the
	// session ends with it.
	kill(t, domainKillers[0], unix.SIGKILL)
	if exit := s.Exit(); exit.Signal == nil || *exit.Signal != "SIGKILL" {
		t.Errorf("terminal/exited says %+v", exit)
	}
}

// If an unsandboxed session kills its subreaper, the sidecar becomes the parent
// of its remaining processes and kills them, whatever their session id. Another
// session continues.
func TestProcessesLeftByADeadSubreaperAreKilled(t *testing.T) {
	t.Parallel()
	w := harness.NewWorld(t)
	e := harness.Start(t, w, harness.Options{Settings: harness.Off(), Wrap: harness.WithoutCgroups(t)})
	kept := e.Spawn(protocol.SpawnParams{
		Kind:    protocol.Tool,
		Command: `setsid sh -c 'echo $$ >kept.new; mv kept.new kept; exec sleep 1000' & exec sleep 1000`,
	})
	rounds := 8
	if testing.Short() {
		rounds = 2
	}
	var longest time.Duration
	for range rounds {
		s := e.Spawn(protocol.SpawnParams{Kind: protocol.Tool, Command: "rm -f pid; " + ownSession +
			"kill -KILL $PPID; sleep 1000"})
		if s.Tracking.Guarantee || s.Tracking.Mechanism != "subreaper" {
			t.Fatalf("tracking is %+v", s.Tracking)
		}
		s.Exit()
		reported, pid := time.Now(), ownSessionPID(t, w)
		harness.MustEnd(t, "what has left the session id is dead", func() bool { return !harness.Alive(pid) })
		longest = max(longest, time.Since(reported))
	}
	t.Logf("%d rounds, none left, %d ms at most after the end was reported", rounds, longest.Milliseconds())
	harness.Eventually(t, "the other session's process is there", func() bool {
		return harness.Read(t, filepath.Join(w.Project, "kept")) != ""
	})
	if other := processIn(t, w, "kept"); !harness.Alive(other) || !harness.Alive(kept.PID) {
		harness.Breach(t, "a session beside it is dead too")
	}
	kept.Close(0)
}

// A session that may signal its subreaper and the sidecar can kill both. Then
// its processes in a session of their own are not found again. That is what
// "degraded" means in a reply. If it did not happen, the reply would be wrong.
// Rarely the watchdog looks before the last thread of the subreaper has ended,
// and finds them.
func TestAProcessThatKillsItsSubreaperAndTheSidecarEscapes(t *testing.T) {
	t.Parallel()
	const rounds = 5
	for range rounds {
		if escapes(t) {
			return
		}
	}
	t.Errorf("it was found %d times, although the reply gives no guarantee", rounds)
}

func escapes(t *testing.T) bool {
	t.Helper()
	w := harness.NewWorld(t)
	e := harness.Start(t, w, harness.Options{Settings: harness.Off(), Wrap: harness.WithoutCgroups(t)})
	s := e.Spawn(protocol.SpawnParams{Kind: protocol.Tool, Command: ownSession + "echo ready; sleep 1000"})
	if s.Tracking.Guarantee || s.Tracking.Mechanism != "subreaper" {
		t.Fatalf("tracking is %+v", s.Tracking)
	}
	s.Await("ready")
	pid, subreaper := ownSessionPID(t, w), subreaperOf(t, e, s)
	harness.Stop(t, e.Process()) // or it would react first
	kill(t, subreaper, unix.SIGKILL)
	// As long as one of these lives, the watchdog finds the process below it.
	// The kernel kills the leader when the subreaper has ended.
	harness.MustEnd(t, "the subreaper and the leader are dead", func() bool {
		return !harness.Alive(subreaper) && !harness.Alive(s.PID)
	})
	kill(t, e.Process(), unix.SIGKILL)
	_ = e.HangUp()
	harness.MustEnd(t, "the watchdog has ended", func() bool { return len(harness.Watchdogs(w)) == 0 })
	return harness.Alive(pid)
}

// ownSession starts a process with a session id of its own, and ownSessionPID
// is its process id. It is killed with the test.
const ownSession = `setsid sh -c 'echo $$ >pid.new; mv pid.new pid; exec sleep 1000' & until [ -e pid ]; do sleep ` +
	`0.01; done; `

func ownSessionPID(t *testing.T, w *harness.World) int {
	t.Helper()
	return processIn(t, w, "pid")
}

// processIn is the process whose id is in a file of the project. It is killed
// with the test.
func processIn(t *testing.T, w *harness.World, name string) int {
	t.Helper()
	pid, err := strconv.Atoi(strings.TrimSpace(harness.Read(t, filepath.Join(w.Project, name))))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Kill(pid, unix.SIGKILL) })
	return pid
}
