package deadline

import (
	"context"
	"errors"
	"testing"
	"time"
)

func TestDeadline(t *testing.T) {
	t.Parallel()
	done := make(chan struct{})
	close(done)
	if d := New(time.Hour); d.Passed() || !d.Wait(done) {
		t.Error("an hour has passed")
	}
	if d := New(time.Millisecond); d.Wait(nil) || !d.Passed() {
		t.Error("what never comes has come")
	}
	select {
	case <-After(time.Millisecond):
	case <-time.After(time.Minute):
		t.Error("the channel is not used")
	}
}

// A context that ends by its limit says so, and one that ends before does not.
func TestContext_EndsByItsLimit(t *testing.T) {
	t.Parallel()
	ctx, cancel := Context(t.Context(), time.Millisecond)
	defer cancel()
	<-ctx.Done()
	if err := context.Cause(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("it ended by its limit: %v", err)
	}
	ctx, cancel = Context(t.Context(), time.Hour)
	cancel()
	<-ctx.Done()
	if err := context.Cause(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("it was cancelled: %v", err)
	}
}
