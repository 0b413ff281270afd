package spawn

import "sync"

// maxInput bounds what waits for a program that does not read its terminal. A paste is far below it.
const maxInput = 16 << 20

// inputs is a queue of bytes between whoever types, who must not wait, and the terminal, which makes wait.
type inputs struct {
	mu      sync.Mutex // guards the fields below
	changed sync.Cond
	waiting []byte
	closed  bool
}

func (q *inputs) init() { q.changed.L = &q.mu }

func (q *inputs) put(data []byte) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed || len(q.waiting)+len(data) > maxInput {
		return false
	}
	q.waiting = append(q.waiting, data...)
	q.changed.Signal()
	return true
}

// take waits for bytes and returns all there are; false once the queue is closed.
func (q *inputs) take() ([]byte, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.waiting) == 0 && !q.closed {
		q.changed.Wait()
	}
	if q.closed {
		return nil, false
	}
	data := q.waiting
	q.waiting = nil
	return data, true
}

func (q *inputs) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.waiting = nil
	q.changed.Signal()
}
