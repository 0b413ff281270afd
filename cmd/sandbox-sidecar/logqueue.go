package main

import (
	"bytes"
	"io"
	"sync/atomic"
	"time"
)

// logQueue writes a log from a goroutine of its own. Whoever logs must not
// wait for an editor that does not read the log: the goroutine that reads
// requests would not see that the editor ends.
type logQueue struct {
	lines  chan []byte
	missed atomic.Int64
	stop   chan struct{} // closed by close
	ended  chan struct{} // closed by the goroutine
}

const (
	// maxLogLines is how many lines may wait, and maxLogLine how long each may
	// be.
	maxLogLines = 1024
	maxLogLine  = 4 << 10
)

// newLogQueue starts writing to out. Missed is called before the next line
// where that many found no room; what it logs goes straight to out.
func newLogQueue(out io.Writer, missed func(lines int64)) *logQueue {
	q := &logQueue{lines: make(chan []byte, maxLogLines), stop: make(chan struct{}), ended: make(chan struct{})}
	write := func(line []byte) {
		if n := q.missed.Swap(0); n > 0 {
			missed(n)
		}
		_, _ = out.Write(line)
	}
	go func() {
		defer close(q.ended)
		for {
			select {
			case line := <-q.lines:
				write(line)
			case <-q.stop:
				for len(q.lines) > 0 {
					write(<-q.lines)
				}
				return
			}
		}
	}()
	return q
}

// Write takes one line and never waits.
func (q *logQueue) Write(line []byte) (int, error) {
	kept := bytes.Clone(line[:min(len(line), maxLogLine)])
	if len(kept) < len(line) {
		kept[maxLogLine-1] = '\n'
	}
	select {
	case q.lines <- kept:
	default:
		q.missed.Add(1)
	}
	return len(line), nil
}

// close writes what waits, for at most the given time. What is logged after it
// is lost. It must be called once.
func (q *logQueue) close(timeout time.Duration) {
	close(q.stop)
	select {
	case <-q.ended:
	case <-time.After(timeout):
	}
}
