package rpc

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/lifecycle"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/platformtest"
	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/client"
	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
	"github.com/sandbox-sidecar/sandbox-sidecar/spawn"
)

// reviews notes what session/review says, by session. early says that it came
// before terminal/exited.
func (e *editor) reviews() (got map[string][]protocol.Finding, early *bool) {
	got, early = map[string][]protocol.Finding{}, new(bool)
	client.On(e.Client, protocol.Reviewed, func(p protocol.ReviewParams) {
		e.update(func() {
			_, ended := e.exits[p.SessionID]
			*early = *early || !ended
			got[p.SessionID] = append(got[p.SessionID], p.Review...)
		})
	})
	return got, early
}

func TestReview_ComesAfterTheEndOfASession(t *testing.T) {
	t.Parallel()
	f := start(t, &platformtest.Fake{}, `{"enabled": true}`)
	e := f.connect()
	got, early := e.reviews()
	want := filepath.Join(f.dir, "Makefile")
	id := call(e, protocol.Spawn, protocol.SpawnParams{Cwd: f.dir, Command: "echo all: >Makefile"}).SessionID
	e.until("session/review", func() bool { return len(got[id]) > 0 })
	e.mu.Lock()
	if len(got[id]) != 1 || got[id][0].Path != want || *early {
		t.Errorf("%+v, before terminal/exited: %v", got[id], *early)
	}
	e.mu.Unlock()
	if end := call(e, protocol.Close, protocol.CloseParams{SessionID: id}); len(end.Review) != 1 ||
		end.Review[0].Path != want {
		t.Errorf("terminal/close: %+v", end.Review)
	}
}

func TestReview_OfAClosedSessionIsInTheAnswerAlone(t *testing.T) {
	t.Parallel()
	f := start(t, &platformtest.Fake{}, `{"enabled": true}`)
	e := f.connect()
	got, _ := e.reviews()
	id := call(e, protocol.Spawn, protocol.SpawnParams{
		Cwd: f.dir, Command: "echo all: >Makefile; echo written; exec sleep 600",
	}).SessionID
	e.output(id, "written")
	end := call(e, protocol.Close, protocol.CloseParams{SessionID: id, GraceMs: new(0)})
	if len(end.Review) != 1 || end.Review[0].Path != filepath.Join(f.dir, "Makefile") {
		t.Errorf("terminal/close: %+v", end.Review)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(got) > 0 {
		t.Errorf("session/review: %+v", got)
	}
}

func TestReview_OfASessionThatChangedNothingDoesNotCome(t *testing.T) {
	t.Parallel()
	f := start(t, &platformtest.Fake{}, `{"enabled": true}`)
	e := f.connect()
	got, _ := e.reviews()
	id := call(e, protocol.Spawn, protocol.SpawnParams{Cwd: f.dir, Command: "true"}).SessionID
	e.exit(id)
	if end := call(e, protocol.Close, protocol.CloseParams{SessionID: id}); end.Review != nil {
		t.Errorf("terminal/close: %+v", end.Review)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(got) > 0 {
		t.Errorf("session/review: %+v", got)
	}
}

// stubborn is a tracker whose groups survive until they may end.
type stubborn struct {
	spawn.Tracker
	mayEnd chan struct{}
}

type stubbornGroup struct{ lifecycle.Group }

func (t *stubborn) NewGroup(name string) (lifecycle.Group, error) {
	group, err := t.Tracker.NewGroup(name)
	return &stubbornGroup{group}, err
}

func (t *stubborn) Linger(group lifecycle.Group) {
	go func() {
		<-t.mayEnd
		t.Tracker.Linger(group.(*stubbornGroup).Group)
	}()
}

func (g *stubbornGroup) Kill(context.Context) (int, error) {
	return 0, fmt.Errorf("kill: %w", &lifecycle.Survivors{PIDs: []int{1}})
}

func TestReview_ComesAfterTheAnswerIfProcessesSurvive(t *testing.T) {
	t.Parallel()
	mayEnd := make(chan struct{})
	f := startWith(t, &platformtest.Fake{}, `{"enabled": true}`, func(o *Options) {
		o.Spawner.Tracker = &stubborn{o.Spawner.Tracker, mayEnd}
	})
	e := f.connect()
	got, _ := e.reviews()
	id := call(e, protocol.Spawn, protocol.SpawnParams{
		Cwd: f.dir, Command: "echo all: >Makefile; echo written; exec sleep 600",
	}).SessionID
	e.output(id, "written")
	end := call(e, protocol.Close, protocol.CloseParams{SessionID: id, GraceMs: new(0)})
	if end.Remaining == 0 || len(end.Review) > 0 {
		t.Errorf("terminal/close: %+v", end)
	}
	close(mayEnd)
	e.until("session/review", func() bool { return len(got[id]) > 0 })
}
