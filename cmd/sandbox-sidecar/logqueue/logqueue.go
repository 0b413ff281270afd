// Package logqueue writes a log without ever waiting for its reader, or into a file.
package logqueue

import (
	"bytes"
	"io"
	"sync/atomic"
	"time"
)

// Queue writes a log from a goroutine of its own, so that no caller waits for
// an editor that does not read the log. The goroutine that reads requests would
// otherwise not notice that the editor ends.
type Queue struct {
	lines  chan []byte
	missed atomic.Int64
	stop   chan struct{} // closed by Close
	ended  chan struct{} // closed by the goroutine
}

const (
	// maxLogLines is how many lines may wait, and maxLogLine their length in
	// bytes.
	maxLogLines = 1024
	maxLogLine  = 4 << 10
)

// New starts writing to out. If lines were dropped, missed is called
// with their number before the next line, and logs directly to out.
func New(out io.Writer, missed func(lines int64)) *Queue {
	q := &Queue{lines: make(chan []byte, maxLogLines), stop: make(chan struct{}), ended: make(chan struct{})}
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
func (q *Queue) Write(line []byte) (int, error) {
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

// Close writes the waiting lines, for at most the given time. Later lines are
// lost. It must be called once.
func (q *Queue) Close(timeout time.Duration) {
	close(q.stop)
	select {
	case <-q.ended:
	case <-time.After(timeout):
	}
}
