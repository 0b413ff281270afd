package spawn

import (
	"bytes"
	"testing"
	"testing/synctest"
)

func TestInputs(t *testing.T) {
	t.Parallel()
	var q inputs
	q.init(nil)
	for _, piece := range []string{"a", "", "bc"} {
		if !q.put([]byte(piece)) {
			t.Fatalf("%q was dropped", piece)
		}
	}
	if data, ok := q.take(); !ok || string(data) != "abc" {
		t.Errorf("take: got %q, %t", data, ok)
	}
	if !q.put(make([]byte, maxInput)) {
		t.Error("as much as may wait was dropped")
	}
	if q.put([]byte("x")) {
		t.Error("more than may wait was taken")
	}
	if data, ok := q.take(); !ok || len(data) != maxInput {
		t.Errorf("take: got %d bytes, %t", len(data), ok)
	}
	if !q.put([]byte("x")) {
		t.Error("there is room again, but input was dropped")
	}
	q.close()
	if q.put([]byte("y")) {
		t.Error("input was taken after the end")
	}
	if data, ok := q.take(); ok {
		t.Errorf("take after the end: got %q", data)
	}
}

// What is queued when the input ends can still be taken, and nothing after it.
func TestInputs_Finish(t *testing.T) {
	t.Parallel()
	var q inputs
	q.init(nil)
	q.put([]byte("a"))
	q.finish()
	if q.put([]byte("b")) {
		t.Error("input was taken after its end")
	}
	if data, ok := q.take(); !ok || string(data) != "a" {
		t.Errorf("take: got %q, %t", data, ok)
	}
	if data, ok := q.take(); ok {
		t.Errorf("take at the end: got %q", data)
	}
}

func TestInputs_TakeWaits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var q inputs
		q.init(nil)
		taken := make(chan []byte, 1)
		ended := make(chan bool, 1)
		go func() {
			data, _ := q.take()
			taken <- data
			_, more := q.take()
			ended <- more
		}()
		synctest.Wait()
		q.put([]byte("late"))
		if data := <-taken; !bytes.Equal(data, []byte("late")) {
			t.Errorf("got %q", data)
		}
		synctest.Wait()
		q.close()
		if <-ended {
			t.Error("take has not seen the end")
		}
	})
}

func TestInputs_AreTypedAtOnceOnlyIfNoneWait(t *testing.T) {
	t.Parallel()
	var q inputs
	var typed bytes.Buffer
	room := 2
	q.init(func(data []byte) int {
		n := min(room, len(data))
		typed.Write(data[:n])
		room -= n
		return n
	})
	if !q.put([]byte("abc")) || typed.String() != "ab" {
		t.Fatalf("typed %q at once, want what there was room for", typed.String())
	}
	room = 10
	q.put([]byte("d"))
	if typed.String() != "ab" {
		t.Errorf("typed %q before queued bytes", typed.String())
	}
	data, _ := q.take()
	typed.Write(data)
	q.put([]byte("e")) // the taker has not called again
	if typed.String() != "abcd" {
		t.Errorf("typed %q before taken bytes", typed.String())
	}
	data, _ = q.take()
	typed.Write(data)
	taking := make(chan struct{})
	go func() {
		defer close(taking)
		q.take()
	}()
	for typing := true; typing; { // until the taker has called again
		q.mu.Lock()
		typing = q.taken
		q.mu.Unlock()
	}
	q.put([]byte("f"))
	if typed.String() != "abcdef" {
		t.Errorf("typed %q, want everything in its order", typed.String())
	}
	q.close()
	<-taking
}
