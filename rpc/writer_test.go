package rpc

import (
	"encoding/base64"
	"errors"
	"io"
	"slices"
	"strings"
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

// slowly is an editor that takes a frame for each value of next.
type slowly struct {
	next  chan struct{}
	taken chan string
}

func (s slowly) Write(frame []byte) (int, error) {
	<-s.next
	s.taken <- string(frame)
	return len(frame), nil
}

// A session that prints without end has two frames on their way, and others do not
// wait for more. Its own come in order.
func TestWriter_OneSessionDoesNotFillTheQueue(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		editor := slowly{make(chan struct{}), make(chan string, 1000)}
		w := newWriter(editor)
		const rounds = 20
		queued := 0
		go func() {
			flooding := newRoom()
			for i := range rounds {
				if w.sendOutput("flood", flooding, []byte{byte(i)}, outputTail) != nil {
					return
				}
				queued++
			}
		}()
		synctest.Wait()
		if queued != roomEach {
			t.Errorf("%d frames of it are on their way, want %d", queued, roomEach)
		}
		if err := w.sendOutput("echo", newRoom(), []byte("a"), outputTail); err != nil {
			t.Fatal(err)
		}
		var order []string
		for range rounds + 1 {
			editor.next <- struct{}{}
			frame := <-editor.taken
			if strings.Contains(frame, `"echo"`) {
				order = append(order, "echo")
				continue
			}
			want := base64.StdEncoding.EncodeToString([]byte{byte(len(order) - echoes(order))})
			if order = append(order, "flood"); !strings.Contains(frame, `"data":"`+want+`"`) {
				t.Errorf("frame %d: %s", len(order), frame)
			}
			synctest.Wait()
		}
		if at := slices.Index(order, "echo"); at < 0 || at > roomEach {
			t.Errorf("the other session's echo is number %d", at)
		}
		w.close(time.Minute)
	})
}

func echoes(order []string) (n int) {
	for _, one := range order {
		if one == "echo" {
			n++
		}
	}
	return n
}
