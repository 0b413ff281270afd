//go:build unix

package caller_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/spawn/caller"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/deadline"
)

// TestMain is a program that has no Catch yet, or has one.
func TestMain(m *testing.M) {
	before := os.Getenv("BEFORE_CATCH")
	if before == "" {
		os.Exit(m.Run())
	}
	caller.EndEarly()
	var caught <-chan caller.Signal
	if before == "both" {
		caught, _ = caller.Catch()
	}
	fmt.Println("ready")
	select {
	case got := <-caught:
		fmt.Println("caught", unix.SignalName(got.Number))
	case <-deadline.After(30 * time.Second):
	}
}

// Until Catch, the signals that Go's runtime drops end the program, as without it.
func TestEndEarly_LetsSignalsEndTheProgramUntilCatch(t *testing.T) {
	t.Parallel()
	for _, number := range []unix.Signal{unix.SIGUSR1, unix.SIGUSR2, unix.SIGALRM, unix.SIGTERM} {
		for before, want := range map[string]string{
			"end early": "signal: " + number.String(), "both": "caught " + unix.SignalName(number),
		} {
			program := exec.Command(os.Args[0])
			program.Env = append(os.Environ(), "BEFORE_CATCH="+before)
			output, err := program.StdoutPipe()
			if err == nil {
				err = program.Start()
			}
			if err != nil {
				t.Fatal(err)
			}
			lines := bufio.NewScanner(output)
			lines.Scan()
			if err := program.Process.Signal(number); err != nil {
				t.Fatal(err)
			}
			got := ""
			if lines.Scan() {
				got = lines.Text()
			}
			if err := program.Wait(); err != nil {
				got = err.Error()
			}
			if got != want {
				t.Errorf("%s, %s: %q, want %q", unix.SignalName(number), before, got, want)
			}
		}
	}
}

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
