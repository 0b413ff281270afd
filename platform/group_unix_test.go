//go:build unix

package platform

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/handshake"
)

// groupInit is the sidecar's side of an init whose part the test plays by the
// file.
func groupInit(t *testing.T) (*GroupInit, *os.File) {
	t.Helper()
	init, theirs, err := NewGroupInit()
	if err != nil {
		t.Fatal(err)
	}
	init.timeout = 10 * time.Millisecond
	served := make(chan error, 1)
	go func() { served <- init.Serve(os.Getpid(), func() {}) }()
	t.Cleanup(func() {
		theirs.Close()
		init.Release()
		if err := <-served; err != nil && !init.cut.Load() {
			t.Error(err)
		}
	})
	return init, theirs
}

// Whoever gets ErrInitGone may start the command elsewhere, so that no init has
// had it then.
func TestGroupInit_SaysWhetherACommandMayHaveRun(t *testing.T) {
	t.Parallel()
	order, streams := anOrder()
	init, theirs := groupInit(t)
	init.timeout = time.Minute
	go func() {
		var call handshake.Call
		_ = json.NewDecoder(theirs).Decode(&call)
		theirs.Close()
	}()
	if _, err := init.Start(t.Context(), order, streams, false); !errors.Is(err, ErrMayHaveRun) {
		t.Errorf("the init ended with the command: %v", err)
	}
	if _, err := init.Start(t.Context(), order, streams, false); !errors.Is(err, ErrInitGone) {
		t.Errorf("the init had ended before: %v", err)
	}
}

func anOrder() (Order, []*os.File) {
	return Order{Program: "true", Argv: []string{"true"}, Dir: "/"}, []*os.File{os.Stdin, os.Stdout, os.Stderr}
}

// An init that reads nothing holds up no call for longer than a timeout, also if
// the call fits into no buffer.
func TestGroupInit_NoCallWaitsForEver(t *testing.T) {
	t.Parallel()
	order, streams := anOrder()
	large := order
	large.Env = []string{"A=" + strings.Repeat("a", 4<<20)}
	init, _ := groupInit(t)
	for _, order := range []Order{order, large} {
		if _, err := init.Start(t.Context(), order, streams, false); !errors.Is(err, ErrSilentInit) {
			t.Errorf("a call of %d variables: %v", len(order.Env), err)
		}
	}
	<-init.gone // only a part of the second call could be sent
	if _, err := init.Start(t.Context(), order, streams, false); !errors.Is(err, ErrInitGone) {
		t.Errorf("after a part of a call: %v", err)
	}
	waiting, _ := groupInit(t)
	waiting.timeout = time.Hour
	waiting.sending <- struct{}{} // another call is being sent
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := waiting.Start(ctx, order, streams, false); !errors.Is(err, context.Canceled) {
		t.Errorf("a call that waits for another one, and is cancelled: %v", err)
	}
}

// What the init has reported before its end counts, also if the sidecar reads it
// after the group's end.
func TestGroupInit_ReportsBeforeItsEndCount(t *testing.T) {
	t.Parallel()
	order, streams := anOrder()
	for range 200 {
		init, theirs := groupInit(t)
		init.timeout = time.Minute
		started := make(chan *Call, 1)
		go func() {
			call, err := init.Start(t.Context(), order, streams, false)
			if err != nil {
				t.Error(err)
			}
			started <- call
		}()
		var received handshake.Call
		if err := json.NewDecoder(theirs).Decode(&received); err != nil {
			t.Fatal(err)
		}
		status := uint32(7 << 8)
		reports := json.NewEncoder(theirs)
		if err := reports.Encode(handshake.CallReport{ID: received.ID, Started: os.Getpid()}); err != nil {
			t.Fatal(err)
		}
		call := <-started
		if call == nil {
			return
		}
		if err := reports.Encode(handshake.CallReport{ID: received.ID, Ended: &status}); err != nil {
			t.Fatal(err)
		}
		theirs.Close()
		init.Release()
		if status, err := call.Wait(false); err != nil || status.ExitStatus() != 7 {
			t.Fatalf("the command ended by %v, %v, and its status was 7", status, err)
		}
		if err := call.Signal(0); !errors.Is(err, os.ErrProcessDone) || call.process != nil {
			t.Fatalf("signalling the ended command: %v; its descriptor: %v", err, call.process)
		}
	}
}

// A call that is cancelled while it starts leaves nothing, also in another process
// group of its session.
func TestGroupInit_ACancelledCallLeavesNothing(t *testing.T) {
	t.Parallel()
	order, streams := anOrder()
	init, theirs := groupInit(t)
	init.timeout = time.Minute
	ctx, cancel := context.WithCancel(t.Context())
	cancelled := make(chan error, 1)
	go func() {
		_, err := init.Start(ctx, order, streams, false)
		cancelled <- err
	}()
	var received handshake.Call
	if err := json.NewDecoder(theirs).Decode(&received); err != nil {
		t.Fatal(err)
	}
	cancel()
	command := exec.Command("/bin/bash", "-c", "set -m; sleep 1000 & echo started; wait")
	command.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	output, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	buffer := make([]byte, 8)
	if _, err := io.ReadFull(output, buffer); err != nil {
		t.Fatal(err)
	}
	report := handshake.CallReport{ID: received.ID, Started: command.Process.Pid}
	if err := json.NewEncoder(theirs).Encode(report); err != nil {
		t.Fatal(err)
	}
	if err := <-cancelled; !errors.Is(err, context.Canceled) {
		t.Errorf("the cancelled call: %v", err)
	}
	// The pipe ends when no process has it any more.
	if rest, err := io.ReadAll(output); err != nil || len(rest) > 0 {
		t.Errorf("%q, %v", rest, err)
	}
	_ = command.Wait()
}
