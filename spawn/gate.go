package spawn

import "sync"

// window is how many bytes may be on their way unacknowledged. It is large
// enough to keep a fast reader busy over one round trip. All of it is drawn
// before the answer to Ctrl-C is: with four times as much, an editor on a busy
// machine took up to two seconds longer to show the prompt, and read no faster.
const window = 128 << 10

// gate holds output back until the reader has caught up. Without flow control
// it is always open.
type gate struct {
	mu      sync.Mutex // guards the fields below
	changed sync.Cond
	lifted  bool
	sent    int // unacknowledged bytes
}

func (g *gate) init(flowControl bool) {
	g.changed.L = &g.mu
	g.lifted = !flowControl
}

// pass waits until n more bytes may be sent, and counts them. A single piece
// may go beyond the window, so that none can be stuck for ever.
func (g *gate) pass(n int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for !g.lifted && g.sent >= window {
		g.changed.Wait()
	}
	g.sent += n
}

// ack gives n bytes back. More than were sent does not buy credit.
func (g *gate) ack(n int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if n > 0 {
		g.sent -= min(n, g.sent)
		g.changed.Signal()
	}
}

// open lifts the gate for good.
func (g *gate) open() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.lifted = true
	g.changed.Signal()
}
