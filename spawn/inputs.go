package spawn

import "sync"

// maxInput bounds the bytes that wait for a program that does not read its
// terminal. A paste is far smaller.
const maxInput = 16 << 20

// inputs is a queue of bytes between the caller of Input, which must not wait,
// and the terminal, which may block.
type inputs struct {
	// try types as many bytes as the terminal takes without waiting, and returns
	// how many, so that a keystroke does not wait for another thread to wake up.
	// nil queues all bytes.
	try func([]byte) int

	mu      sync.Mutex // guards the fields below
	changed sync.Cond
	waiting []byte
	taken   bool // bytes were taken, and may not be typed yet
	last    bool // no more bytes are taken
	closed  bool
}

func (q *inputs) init(try func([]byte) int) { q.changed.L, q.try = &q.mu, try }

// put types the bytes or queues them. It reports false if they were dropped.
func (q *inputs) put(data []byte) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed || q.last || len(q.waiting)+len(data) > maxInput {
		return false
	}
	if len(q.waiting) == 0 && !q.taken && q.try != nil {
		data = data[q.try(data):]
	}
	if len(data) > 0 {
		q.waiting = append(q.waiting, data...)
		q.changed.Signal()
	}
	return true
}

// take waits for bytes and returns all of them. The caller must type them
// before the next call. It returns false once the queue is closed, or is finished
// and empty.
func (q *inputs) take() ([]byte, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.taken = false
	for len(q.waiting) == 0 && !q.closed && !q.last {
		q.changed.Wait()
	}
	if q.closed || len(q.waiting) == 0 {
		return nil, false
	}
	data := q.waiting
	q.waiting, q.taken = nil, true
	return data, true
}

// finish refuses more bytes. Those that are queued can be taken.
func (q *inputs) finish() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.last = true
	q.changed.Signal()
}

// close drops the queued bytes, and refuses more.
func (q *inputs) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.waiting = nil
	q.changed.Signal()
}
