//go:build unix

package report

import (
	"io"
	"sync"
)

// maxHeld bounds what is held.
const maxHeld = 64 << 10

// Held holds what is written to it until it is known whether a window gets the
// same report. A nil one holds nothing.
type Held struct {
	to io.Writer

	mu      sync.Mutex // guards the fields below
	text    []byte
	known   bool
	dropped bool
}

// Hold returns a writer that holds what is for another one.
func Hold(to io.Writer) *Held { return &Held{to: to} }

// Write implements io.Writer.
func (h *Held) Write(text []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.dropped:
	case h.known:
		return h.to.Write(text)
	case len(h.text)+len(text) <= maxHeld:
		h.text = append(h.text, text...)
	}
	return len(text), nil
}

// Drop forgets what was held, and what will be written until Pass is called.
func (h *Held) Drop() {
	if h == nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.known, h.dropped, h.text = true, true, nil
}

// Flush writes what was held, if nothing has decided about it: the session did
// not start.
func (h *Held) Flush() {
	h.mu.Lock()
	known := h.known
	h.mu.Unlock()
	if !known {
		h.Pass()
	}
}

// Pass writes what was held, and from then on everything.
func (h *Held) Pass() {
	if h == nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.known, h.dropped = true, false
	_, _ = h.to.Write(h.text)
	h.text = nil
}
