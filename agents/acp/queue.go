package acp

import (
	"io"
	"sync"
)

// mostQueued is how many bytes may wait for an agent that does not read. Then
// the editor has to wait.
const mostQueued = maxLine

// lineCost is what a short line takes beside its bytes.
const lineCost = 64

// queue writes lines to an agent, so that whoever reads the editor's answers
// never waits for the agent: the agent itself may wait for an answer.
type queue struct {
	mu      sync.Mutex // guards the fields below
	changed sync.Cond
	lines   [][]byte
	bytes   int
	closed  bool
	failed  bool
}

// newQueue starts to write. to is closed after the last line.
func newQueue(to io.WriteCloser) *queue {
	q := &queue{}
	q.changed.L = &q.mu
	go q.write(to)
	return q
}

func (q *queue) write(to io.WriteCloser) {
	defer to.Close()
	for {
		q.mu.Lock()
		for len(q.lines) == 0 && !q.closed {
			q.changed.Wait()
		}
		if len(q.lines) == 0 {
			q.mu.Unlock()
			return
		}
		line := q.lines[0]
		q.lines[0] = nil
		q.lines = q.lines[1:]
		q.mu.Unlock()
		_, err := to.Write(line)
		q.mu.Lock()
		q.bytes -= len(line) + lineCost
		q.failed = q.failed || err != nil
		q.changed.Broadcast()
		q.mu.Unlock()
	}
}

// put adds a line, and its end. It keeps the line. What comes after close is lost.
func (q *queue) put(line []byte) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for q.bytes > mostQueued && !q.failed && !q.closed {
		q.changed.Wait()
	}
	if q.closed || q.failed {
		return
	}
	line = append(line, '\n')
	q.lines = append(q.lines, line)
	q.bytes += len(line) + lineCost
	q.changed.Broadcast()
}

// close ends the agent's input once the lines are written.
func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.changed.Broadcast()
}
