package spawn

import "sync"

// window is how many bytes may be unacknowledged. It keeps a fast reader busy
// for one round trip. The editor draws all of it before the answer to Ctrl-C,
// so it is no larger; see docs/design/flow-control.md for the figures.
const window = 128 << 10

// gate holds output back until the editor has acknowledged enough. Without flow
// control it is always open.
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

// pass waits until the gate is open, and counts n bytes as sent. One piece may
// exceed the window, so that a large piece cannot wait for ever.
func (g *gate) pass(n int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for !g.lifted && g.sent >= window {
		g.changed.Wait()
	}
	g.sent += n
}

// ack acknowledges n bytes. Acknowledging more than was sent gives no credit.
func (g *gate) ack(n int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if n > 0 {
		g.sent -= min(n, g.sent)
		g.changed.Broadcast()
	}
}

// open opens the gate for good.
func (g *gate) open() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.lifted = true
	g.changed.Broadcast()
}
