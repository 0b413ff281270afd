//go:build linux

package lifetime

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/google/uuid"
	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/client"
	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/deadline"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// stride is the distance between two steps that are tried. Each run takes other
// steps. SIDECAR_EVERY_STEP tries all of them, which takes minutes.
func stride(steps int) int {
	sample := 6
	switch {
	case os.Getenv("SIDECAR_EVERY_STEP") != "":
		return 1
	case testing.Short():
		sample = 3
	}
	return max(1, steps/sample)
}

// A process is killed at some step of a spawn. Once the next sidecar has
// started, nothing is left that was started before. If only a helper was
// killed, the sidecar lives: at most one spawn fails, and the next one works. If
// variants take turns, each target has one sandbox and mode, and each of those has a
// target.
func TestADeathAtAnyStepLeavesNothing(t *testing.T) {
	t.Parallel()
	modes := trackingModes(t)
	for i, mode := range modes {
		for j, sandbox := range sandboxes {
			for k, target := range []target{targetStart, targetSidecar, targetBoth, targetHelper, targetWatchdog} {
				if !harness.Turn(t, i*len(sandboxes)+j+k, len(modes)*len(sandboxes)) {
					continue
				}
				t.Run(sandbox.name+" "+mode.name+" "+string(target), func(t *testing.T) {
					t.Parallel()
					dieAtSteps(t, sandbox.settings, mode.wrap(t), target)
				})
			}
		}
	}
}

func dieAtSteps(t *testing.T, settings string, wrap func(*exec.Cmd), target target) {
	t.Helper()
	try := func(t *testing.T, step int) int { return dieAt(t, settings, wrap, target, step) }
	if target == targetStart {
		try = func(t *testing.T, step int) int { return dieStarting(t, settings, wrap, step) }
	}
	steps := try(t, 0)
	if steps < 5 {
		t.Fatalf("all takes %d steps: they are not counted", steps)
	}
	tried := 0
	for step := 1 + rand.IntN(stride(steps)); step <= steps; step += stride(steps) {
		t.Run(strconv.Itoa(step), func(t *testing.T) { try(t, step) })
		tried++
	}
	t.Logf("%d of %d steps tried", tried, steps)
}

// dieAt spawns while the target is to be killed at a step. It kills the sidecar
// too, if that was not the target, starts another, and checks what is left. It
// returns the number of steps; with step 0 none was interrupted.
func dieAt(t *testing.T, settings string, wrap func(*exec.Cmd), target target, step int) (steps int) {
	t.Helper()
	w := harness.NewWorld(t)
	e := harness.Start(t, w, harness.Options{Settings: settings, Wrap: func(command *exec.Cmd) {
		underTracer(t, command, wrap, target, step)
	}})
	endDescendants(t, e.Client)
	sidecar := announcedSidecar(t, e.Log)
	kill(t, e.Process(), unix.SIGUSR1)
	e.Log.Await(t, "armed")

	token := fmt.Sprintf("300.%d", uuid.New().ID())
	away := away(e)
	if !guaranteed(e) && (target == targetHelper || target == targetWatchdog) {
		away = "" // a subreaper that is killed finds nothing again
	}
	spawn := func() error {
		_, err := harness.Try(e, protocol.Spawn, protocol.SpawnParams{
			Kind: protocol.Tool, Cwd: w.Project, Command: fmt.Sprintf("%ssleep %s & sleep %s", away, token, token),
		})
		return err
	}
	err := spawn()
	if target == targetHelper && step > 0 {
		// The second spawn may be interrupted instead, if there were fewer
		// steps this time.
		if second := spawn(); second != nil && err != nil {
			t.Errorf("two spawns in a row failed: %v, %v", err, second)
		} else {
			err = errors.Join(err, second)
		}
		var answer *client.Error
		if err != nil && !errors.As(err, &answer) {
			t.Errorf("a spawn was not answered: %v", err)
		}
	}
	if err == nil || target == targetHelper || step == 0 {
		kill(t, sidecar, unix.SIGKILL)
	}
	<-e.Gone() // its descriptors are closed, so the journal's lock is free
	switch {
	case target == targetWatchdog && step == 0:
		harness.NoTrace(t, w, sidecar) // this is all that it has to do
	case target == targetWatchdog:
		harness.MustEnd(t, "the watchdog has ended", func() bool { return len(harness.Watchdogs(w)) == 0 })
	}
	steps = mustBeSwept(t, w, e.Client, sidecar, e.Log)
	if left := harness.Find(token); len(left) != 0 {
		harness.Breach(t, "%d processes are left", len(left))
	}
	return steps
}

// mustBeSwept starts the next sidecar after the death of one below a tracer,
// and makes sure that nothing of the dead one is left then. It returns the
// number of steps.
func mustBeSwept(t *testing.T, w *harness.World, dead *client.Client, sidecar int, log *harness.Buffer) (steps int) {
	t.Helper()
	// With the same cache directory it would take over the holder of overlays.
	next := harness.Start(t, w, harness.Options{Wrap: func(command *exec.Cmd) {
		command.Env = append(command.Env, "XDG_CACHE_HOME="+filepath.Join(w.Home, "another cache"))
	}})
	mustLeaveNobody(t, dead)
	awaitSweep(t, w)
	_ = next.HangUp()
	harness.NoTrace(t, w, sidecar)
	steps, err := strconv.Atoi(log.Await(t, `steps=(\d+)`)[1])
	if err != nil {
		t.Fatal(err)
	}
	return steps
}

// awaitSweep waits until a sidecar that has started no session has removed what
// dead ones have left. One that ends before leaves that to the next.
func awaitSweep(t *testing.T, w *harness.World) {
	t.Helper()
	harness.Eventually(t, "the state directory holds one sidecar's journal and socket", func() bool {
		entries, err := os.ReadDir(w.State())
		journals, _ := filepath.Glob(filepath.Join(w.State(), "*.journal"))
		sockets, _ := filepath.Glob(filepath.Join(w.State(), "*", "control"))
		return err == nil && len(entries) == 2 && len(journals) == 1 && len(sockets) == 1
	})
}

// dieStarting is dieAt for a sidecar's own start.
func dieStarting(t *testing.T, settings string, wrap func(*exec.Cmd), step int) (steps int) {
	t.Helper()
	w, log := harness.NewWorld(t), &harness.Buffer{}
	harness.Write(t, w.UserSettings(), settings)
	command := exec.Command(harness.Binary(t), "serve")
	command.Env, command.Stderr = harness.Environ(w), log
	underTracer(t, command, wrap, targetStart, step)
	c, err := client.Start(command)
	if err != nil {
		t.Fatal(err)
	}
	endDescendants(t, c)
	sidecar := announcedSidecar(t, log)
	ctx, cancel := deadline.Context(t.Context(), harness.Timeout)
	defer cancel()
	if _, err := client.Call(ctx, c, protocol.Initialize, protocol.InitializeParams{}); err == nil {
		kill(t, sidecar, unix.SIGKILL)
	}
	<-c.Gone()
	return mustBeSwept(t, w, c, sidecar, log)
}
