//go:build unix

package main

import (
	"log/slog"
	"sync"

	"github.com/sandbox-sidecar/sandbox-sidecar/lifecycle"
	"github.com/sandbox-sidecar/sandbox-sidecar/spawn"
)

// headStart makes what a session needs whatever its settings are, while another
// goroutine reads them: the tracker, and a stage that waits for its order. See
// docs/design/exec.md.
type headStart struct {
	made     chan struct{} // closed once the fields below are set
	tracker  *lifecycle.Tracker
	prepared *spawn.Prepared
	drop     sync.Once // taken or dropped
}

func newHeadStart(logger *slog.Logger) *headStart {
	h := &headStart{made: make(chan struct{})}
	go func() {
		defer close(h.made)
		h.tracker = openTracker(logger)
		spawner := &spawn.Spawner{Backend: backendForOne(logger), Tracker: h.tracker, Logger: logger}
		h.prepared = spawner.Prepare()
	}()
	return h
}

// take returns the stage. The caller must use it or drop it.
func (h *headStart) take() *spawn.Prepared {
	<-h.made
	h.drop.Do(func() {})
	return h.prepared
}

// close drops the stage, unless it was taken, and ends everything else. No
// session may run any more.
func (h *headStart) close() {
	<-h.made
	h.drop.Do(h.prepared.Drop)
	closeWatches(h.tracker)
	_ = h.tracker.Close() // the user's next sidecar ends what is left
}
