package spawn

import "sync"

// maxInput bounds what waits for a program that does not read its terminal. A
// paste is far below it.
const maxInput = 16 << 20

// inputs is a queue of bytes between whoever types, who must not wait, and the
// terminal, which makes wait.
type inputs struct {
	// try types bytes as far as that is possible without waiting, and returns
	// how many; nil where none are to be typed so. A keystroke then need not
	// wait for another thread to wake up.
	try func([]byte) int

	mu      sync.Mutex // guards the fields below
	changed sync.Cond
	waiting []byte
	taken   bool // what was taken may not be typed yet
	closed  bool
}

func (q *inputs) init(try func([]byte) int) { q.changed.L, q.try = &q.mu, try }

func (q *inputs) put(data []byte) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed || len(q.waiting)+len(data) > maxInput {
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

// take waits for bytes and returns all there are, which must be typed before it
// is called again; false once the queue is closed.
func (q *inputs) take() ([]byte, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.taken = false
	for len(q.waiting) == 0 && !q.closed {
		q.changed.Wait()
	}
	if q.closed {
		return nil, false
	}
	data := q.waiting
	q.waiting, q.taken = nil, true
	return data, true
}

func (q *inputs) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.waiting = nil
	q.changed.Signal()
}
