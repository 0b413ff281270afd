package spawn

import (
	"context"
	"testing"
)

// A caller that gives up does not wait for a stage that is being started, and
// closing the pool does.
func TestStandbyPool_TakeEndsWithItsContext(t *testing.T) {
	t.Parallel()
	var p standbyPool
	waiting := &waitingStage{started: make(chan struct{})}
	p.waiting = waiting
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if stage := p.take(ctx, nil); stage != nil {
		t.Error("it got a stage")
	}
	closed := make(chan struct{})
	go func() {
		p.close(nil)
		close(closed)
	}()
	select {
	case <-closed:
		t.Error("nobody waits for the stage")
	default:
	}
	close(waiting.started) // without a stage: it could not be started
	<-closed
}
