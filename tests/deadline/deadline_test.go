package deadline

import (
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
