//go:build unix

package rpc

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/platformtest"
	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
)

func TestInputs_KeepTheirOrder(t *testing.T) {
	t.Parallel()
	f := start(t, &platformtest.Fake{}, `{"enabled": false}`)
	e := f.connect()
	session := call(e, protocol.Spawn, protocol.SpawnParams{
		Cwd: f.dir, Command: "stty raw -echo; echo ready; exec cat",
	})
	e.output(session.SessionID, "ready\n")
	var want strings.Builder
	for i := range 10_000 {
		piece := fmt.Sprintf("%d ", i)
		want.WriteString(piece)
		e.typeText(session.SessionID, piece)
	}
	e.until("everything typed", func() bool { return e.outputs[session.SessionID].Len() >= len("ready\n")+want.Len() })
	if got := strings.TrimPrefix(e.printed(session.SessionID), "ready\n"); got != want.String() {
		t.Errorf("%d bytes came back in another order, the first difference at byte %d", len(got),
			firstDifference(got, want.String()))
	}
}

func firstDifference(a, b string) int {
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return i
		}
	}
	return min(len(a), len(b))
}

func TestSpawn_SlowOneDelaysNoOther(t *testing.T) {
	t.Parallel()
	hold := platformtest.NewHold(t)
	f := start(t, &platformtest.Fake{Hold: hold}, `{"enabled": true}`)
	e := f.connect()
	hold.Release(t)
	quick := call(e, protocol.Spawn, protocol.SpawnParams{Cwd: f.dir, Command: "stty -echo; echo ready; exec cat"})
	hold.Arrived(t)
	e.output(quick.SessionID, "ready")

	slow := uuid.NewString()
	answered := make(chan error, 1)
	go func() {
		_, err := try(e, protocol.Spawn, protocol.SpawnParams{
			SessionID: slow, Cwd: f.dir,
			Shell: &protocol.Shell{Program: "/bin/sh"},
		})
		answered <- err
	}()
	hold.Arrived(t)
	// Its keystrokes wait in order until it has started; those of the other
	// session do not wait.
	e.typeText(slow, "exit ")
	e.typeText(slow, "5\n")
	e.notify(protocol.Resize.Method, protocol.ResizeParams{SessionID: slow, Cols: 100, Rows: 30})
	e.typeText(quick.SessionID, "meanwhile\n")
	e.output(quick.SessionID, "meanwhile")
	if list := call(e, protocol.List, protocol.Empty{}); len(list.Sessions) != 1 {
		t.Errorf("list: got %+v, want the started session alone", list.Sessions)
	}
	select {
	case err := <-answered:
		t.Fatalf("the slow spawn was answered before its stage had reported: %v", err)
	default:
	}
	hold.Release(t)
	if err := <-answered; err != nil {
		t.Fatal(err)
	}
	if code := e.exit(slow); code != 5 {
		t.Errorf("what was typed before the start: got exit code %d, want 5", code)
	}
}

func TestClose_CancelsASessionThatIsStarting(t *testing.T) {
	t.Parallel()
	hold := platformtest.NewHold(t)
	f := start(t, &platformtest.Fake{Hold: hold}, `{"enabled": true}`)
	e := f.connect()
	id := uuid.NewString()
	answered := make(chan error, 1)
	go func() {
		_, err := try(e, protocol.Spawn, protocol.SpawnParams{SessionID: id, Cwd: f.dir, Command: "true"})
		answered <- err
	}()
	hold.Arrived(t)
	_, err := try(e, protocol.Spawn, protocol.SpawnParams{SessionID: id, Cwd: f.dir, Command: "true"})
	refused(t, err, protocol.CodeInvalidParams)
	_, err = try(e, protocol.Close, protocol.CloseParams{SessionID: id})
	refused(t, err, protocol.CodeSessionNotFound)
	refused(t, <-answered, protocol.CodeSpawnFailed)
	// The id is free again.
	hold.Release(t)
	call(e, protocol.Spawn, protocol.SpawnParams{SessionID: id, Cwd: f.dir, Command: "true"})
	if code := e.exit(id); code != 0 {
		t.Errorf("got exit code %d", code)
	}
}

func TestShutdown_CancelsASessionThatIsStarting(t *testing.T) {
	t.Parallel()
	hold := platformtest.NewHold(t)
	f := start(t, &platformtest.Fake{Hold: hold}, `{"enabled": true}`)
	e := f.connect()
	answered := make(chan error, 1)
	go func() {
		_, err := try(e, protocol.Spawn, protocol.SpawnParams{Cwd: f.dir, Command: "true"})
		answered <- err
	}()
	hold.Arrived(t)
	call(e, protocol.Shutdown, protocol.Empty{})
	if err := <-answered; err == nil {
		t.Error("a session was started during shutdown")
	}
	_, err := try(e, protocol.Spawn, protocol.SpawnParams{Cwd: f.dir, Command: "true"})
	refused(t, err, protocol.CodeInvalidRequest)
	e.notify(protocol.Exit.Method, protocol.Empty{})
	f.wait()
	if f.err != nil {
		t.Errorf("Serve: %v", f.err)
	}
}

func TestSpawn_200AtOnce(t *testing.T) {
	t.Parallel()
	f := start(t, &platformtest.Fake{}, `{"enabled": false}`)
	e := f.connect()
	ids := make([]string, 200)
	var spawning sync.WaitGroup
	for i := range ids {
		ids[i] = uuid.NewString()
		spawning.Go(func() {
			line := fmt.Sprintf("echo this is %d; exit %d", i, i)
			if _, err := try(e, protocol.Spawn, protocol.SpawnParams{
				SessionID: ids[i], Cwd: f.dir, Command: line,
			}); err != nil {
				t.Errorf("session %d: %v", i, err)
			}
		})
	}
	spawning.Wait()
	for i, id := range ids {
		if code := e.exit(id); code != i {
			t.Errorf("session %d: exit code %d", i, code)
		}
		if got, want := e.printed(id), fmt.Sprintf("this is %d\r\n", i); got != want {
			t.Errorf("session %d: output %q, want %q", i, got, want)
		}
	}
	if list := call(e, protocol.List, protocol.Empty{}); len(list.Sessions) != len(ids) {
		t.Errorf("list has %d sessions, want %d", len(list.Sessions), len(ids))
	}
}

func TestRequests_AreBounded(t *testing.T) {
	t.Parallel()
	f := start(t, &platformtest.Fake{}, `{"enabled": false}`)
	e := f.connect()
	session := call(e, protocol.Spawn, protocol.SpawnParams{Cwd: f.dir, Command: "read x; exit 3"})
	var waiting sync.WaitGroup
	answers := make(chan error, maxConcurrent+1)
	for range maxConcurrent + 1 {
		waiting.Go(func() {
			status, err := try(e, protocol.Wait, protocol.SessionParams{SessionID: session.SessionID})
			if err == nil && (status.ExitCode == nil || *status.ExitCode != 3) {
				err = fmt.Errorf("ended with %+v", status)
			}
			answers <- err
		})
	}
	refused(t, <-answers, protocol.CodeInternalError) // only the one above the limit is answered now
	e.typeText(session.SessionID, "\n")
	waiting.Wait()
	for range maxConcurrent {
		if err := <-answers; err != nil {
			t.Fatal(err)
		}
	}
}
