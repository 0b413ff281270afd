package rpc

import (
	"path/filepath"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/platformtest"
	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/client"
	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
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
