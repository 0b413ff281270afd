//go:build unix

package caller_test

import (
	"os"
	"os/signal"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/spawn/caller"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/deadline"
)

// TestCatch_TellsEveryChannelAndPackageSignal is not parallel, as a signal is
// for the whole process.
func TestCatch_TellsEveryChannelAndPackageSignal(t *testing.T) {
	first, stopFirst := caller.Catch()
	second, stopSecond := caller.Catch()
	usual := make(chan os.Signal, 1)
	signal.Notify(usual, unix.SIGUSR1)
	defer signal.Stop(usual)
	send := func(channels ...<-chan caller.Signal) {
		t.Helper()
		if err := unix.Kill(os.Getpid(), unix.SIGUSR1); err != nil {
			t.Fatal(err)
		}
		for i, channel := range channels {
			select {
			case got := <-channel:
				if got != (caller.Signal{Number: unix.SIGUSR1}) {
					t.Errorf("channel %d: %+v", i, got)
				}
			case <-deadline.After(30 * time.Second):
				t.Fatalf("channel %d got nothing", i)
			}
		}
		select {
		case <-usual:
		case <-deadline.After(30 * time.Second):
			t.Fatal("package signal got nothing")
		}
	}
	send(first, second)
	stopFirst()
	send(second)
	if len(first) != 0 {
		t.Error("a channel got a signal after its end")
	}
	stopSecond()
	third, stopThird := caller.Catch()
	send(third)
	stopThird()
}
