package logqueue

import (
	"bytes"
	"strings"
	"testing"
	"time"
)

// slowLog blocks writes until opened is closed.
type slowLog struct {
	bytes.Buffer
	opened chan struct{}
}

func (s *slowLog) Write(p []byte) (int, error) {
	<-s.opened
	return s.Buffer.Write(p)
}

func TestQueue_DoesNotBlockWritersOnASlowReader(t *testing.T) {
	t.Parallel()
	log := &slowLog{opened: make(chan struct{})}
	missed := int64(0)
	q := New(log, func(lines int64) { missed += lines })
	const lines = 3 * maxLogLines
	for range lines {
		if _, err := q.Write([]byte("line\n")); err != nil {
			t.Fatal(err)
		}
	}
	begun := time.Now()
	q.Close(10 * time.Millisecond)
	if took := time.Since(begun); took > 30*time.Second {
		t.Errorf("close took %v", took)
	}
	close(log.opened)
	<-q.ended
	written := int64(strings.Count(log.String(), "line\n"))
	if written+missed != lines || missed == 0 {
		t.Errorf("%d lines written, %d reported as missed, want %d", written, missed, lines)
	}
}

func TestQueue_TruncatesALongLine(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	q := New(&log, func(int64) {})
	_, _ = q.Write([]byte(strings.Repeat("x", 1<<20) + "\n"))
	_, _ = q.Write([]byte("last\n"))
	q.Close(time.Minute)
	if log.Len() != maxLogLine+len("last\n") || !strings.HasSuffix(log.String(), "x\nlast\n") {
		t.Errorf("%d bytes, the end is %q", log.Len(), log.String()[max(0, log.Len()-20):])
	}
}
