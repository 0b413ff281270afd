package rpc

import (
	"errors"
	"io"
	"testing"
	"testing/synctest"
	"time"
)

// stuck is an editor that does not read: writes wait until it is closed.
type stuck struct{ closed chan struct{} }

func (s stuck) Write([]byte) (int, error) {
	<-s.closed
	return 0, io.ErrClosedPipe
}

func TestWriter_HoldsAFewFramesForAnEditorThatDoesNotRead(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		editor := stuck{make(chan struct{})}
		w := newWriter(editor)
		sent := make(chan int)
		go func() {
			defer close(sent)
			for i := range 100 * queueLength {
				if w.send([]byte("{}")) != nil {
					return
				}
				sent <- i
			}
		}()
		count := 0
		for waiting := true; waiting; {
			select {
			case <-sent:
				count++
			case <-time.After(time.Minute): // fires once every goroutine waits
				waiting = false
			}
		}
		if count != queueLength+1 { // one is being written
			t.Errorf("%d frames were taken, want %d", count, queueLength+1)
		}

		// The sender is freed, and close does not wait for an editor that takes
		// nothing.
		begun := time.Now()
		defer w.abandonStalled(time.Second, time.Minute)()
		if _, more := <-sent; more {
			t.Error("a frame was taken after the editor was abandoned")
		}
		w.close(time.Minute)
		if elapsed := time.Since(begun); elapsed < time.Second || elapsed > 2*time.Second {
			t.Errorf("it was abandoned after %v, want %v", elapsed, time.Second)
		}
		close(editor.closed)
		<-w.broken
		if err := w.send([]byte("{}")); !errors.Is(err, errClosed) {
			t.Errorf("send after the end: got %v, want %v", err, errClosed)
		}
	})
}

// slow is an editor that takes a frame now and then.
type slow struct{}

func (slow) Write(p []byte) (int, error) {
	time.Sleep(800 * time.Millisecond) // of synctest's time
	return len(p), nil
}

func TestWriter_WaitsForAnEditorThatReadsSlowly(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWriter(slow{})
		begun := time.Now()
		defer w.abandonStalled(time.Second, 10*time.Second)()
		sent := 0
		for w.send([]byte("{}")) == nil {
			sent++
		}
		if elapsed := time.Since(begun); elapsed < 10*time.Second || sent < 10 {
			t.Errorf("%d frames were sent until it was abandoned after %v", sent, elapsed)
		}
		w.close(time.Minute)
		<-w.broken
	})
}

func TestWriter_CloseWritesWhatIsQueued(t *testing.T) {
	t.Parallel()
	var out written
	w := newWriter(&out)
	for range queueLength {
		if err := w.send([]byte("{}")); err != nil {
			t.Fatal(err)
		}
	}
	w.close(time.Minute)
	w.close(time.Minute) // closing twice is harmless
	if got, want := out.Len(), queueLength*len("Content-Length: 2\r\n\r\n{}"); got != want {
		t.Errorf("wrote %d bytes, want %d", got, want)
	}
}
