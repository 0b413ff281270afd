//go:build linux

package lifetime

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// killWithWatchdog kills a sidecar, its watchdog and its subreapers so that
// none can react.
func killWithWatchdog(t *testing.T, e *harness.Editor) {
	t.Helper()
	watchdog := watchdogOf(t, e.World, e.Process())
	// Stopped first, because they could react before the second kill. The
	// sidecar is first of all: it continues a stopped subreaper.
	subreapers := harness.Subreapers(e.Process())
	harness.Stop(t, e.Process())
	for _, pid := range append(subreapers, watchdog) {
		harness.Stop(t, pid)
	}
	kill(t, e.Process(), unix.SIGKILL)
	for _, pid := range append(subreapers, watchdog) {
		kill(t, pid, unix.SIGKILL)
	}
	// Its first thread may be a zombie while others still hold the journal's
	// lock. Once it is reaped, it is dead.
	_ = e.HangUp()
}

// onlyJournal returns the path of the one journal in the world.
func onlyJournal(t *testing.T, w *harness.World) string {
	t.Helper()
	journals, err := filepath.Glob(filepath.Join(w.State(), "*.journal"))
	if err != nil || len(journals) != 1 {
		t.Fatalf("journals %q, %v, expected one", journals, err)
	}
	return journals[0]
}

// awaitRecovery waits until a dead sidecar's journal has been carried out. The
// end of a sidecar interrupts its recovery, and the next one continues it.
func awaitRecovery(t *testing.T, journal string) {
	t.Helper()
	harness.MustEnd(t, "the dead sidecar's journal is gone", func() bool {
		_, err := os.Lstat(journal)
		return errors.Is(err, fs.ErrNotExist)
	})
}

// If the watchdog is killed, the sidecar starts another one, which does the
// same work.
func TestAKilledWatchdogIsReplaced(t *testing.T) {
	t.Parallel()
	e := harness.Start(t, harness.NewWorld(t), harness.Options{Settings: harness.Off()})
	b := harness.StartEscapees(t, e, protocol.Tool)
	first := watchdogOf(t, e.World, e.Process())
	kill(t, first, unix.SIGKILL)
	harness.Eventually(t, "another watchdog runs", func() bool {
		now := harness.Watchdogs(e.World)
		return len(now) == 1 && now[0] != first
	})
	e.Log.Await(t, "watchdog has died")
	kill(t, e.Process(), unix.SIGKILL)
	b.AwaitPromisedDeath(t)
	harness.NoTrace(t, e.World, e.Process())
}

// The sidecar and its watchdog are killed together. The next sidecar of the
// same user cleans up what they left, and touches nothing of another living
// sidecar.
func TestTheNextSidecarCleansUpAfterASidecarAndItsWatchdog(t *testing.T) {
	t.Parallel()
	w := harness.NewWorld(t)
	off := harness.Options{Settings: harness.Off()}
	dead := harness.Start(t, w, off)
	left := harness.StartEscapees(t, dead, protocol.Tool)
	journal := onlyJournal(t, w)
	living := harness.Start(t, w, off)
	kept := harness.StartEscapees(t, living, protocol.Tool)
	killWithWatchdog(t, dead)
	if len(left.Alive()) == 0 {
		t.Fatal("the escapees are dead without anybody to kill it: this test shows nothing")
	}
	next := harness.Start(t, w, off)
	left.AwaitPromisedDeath(t)
	harness.MustEnd(t, "the dead sidecar's cgroups are gone", func() bool {
		return len(w.Cgroups(t, dead.Process())) == 0
	})
	awaitRecovery(t, journal)
	_ = next.HangUp() // its end does not affect the other sidecar either
	if got := len(kept.Alive()); got < 7 {
		harness.Breach(t, "the recovery touched a living sidecar's session: %d processes are left", got)
	}
	kept.Session.Close(0)
	kept.AwaitPromisedDeath(t)
	_ = living.HangUp()
	harness.NoTrace(t, w, living.Process())
}

// Only the journal's lock shows whether its owner lives. If another process
// holds the lock, nothing is cleaned up although the owner is dead. Once the
// lock is free, the next sidecar cleans up, even if the process id is in use
// again.
func TestALockedJournalIsNotCleanedUp(t *testing.T) {
	t.Parallel()
	w := harness.NewWorld(t)
	off := harness.Options{Settings: harness.Off()}
	dead := harness.Start(t, w, off)
	left := harness.StartEscapees(t, dead, protocol.Tool)
	killWithWatchdog(t, dead)
	journal := onlyJournal(t, w)
	lock, err := os.Open(journal)
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		t.Fatalf("the dead sidecar's journal is locked: %v", err)
	}
	first := harness.Start(t, w, off)
	if err := first.HangUp(); err == nil { // it waits for its recovery
		t.Error("hanging up without shutdown is exit status 1")
	}
	if got := len(left.Alive()); got < 4 { // the others were killed by the end of their terminal
		harness.Breach(t, "%d processes are left by a recovery that may not touch them, expected 4 or more", got)
	}
	lock.Close()
	last := harness.Start(t, w, off)
	left.AwaitPromisedDeath(t)
	awaitRecovery(t, journal)
	_ = last.HangUp()
	harness.NoTrace(t, w, dead.Process())
}
