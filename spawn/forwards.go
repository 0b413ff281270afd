package spawn

import (
	"errors"
	"sync"

	"github.com/sandbox-sidecar/sandbox-sidecar/spawn/forward"
)

// Errors of Forward, in words for the user.
var (
	// ErrSharedLocalhost means that the session's servers are at this machine's
	// localhost already.
	ErrSharedLocalhost = errors.New("the session shares this machine's localhost")
	// ErrNoLocalhost means that the session can have no servers.
	ErrNoLocalhost = errors.New("the session has no localhost, because this machine cannot give it one of its own")
	// ErrManyPorts bounds what one session can be asked for.
	ErrManyPorts = errors.New("too many ports of this session are open")
)

const maxForwards = 64

// forwards are the open ports of a session.
type forwards struct {
	mu     sync.Mutex // guards what follows
	closed bool
	open   map[[2]uint16]*forward.Forward
}

// Forward shows a server that listens at a port of the session's own localhost
// at a port of this machine's, until the session ends. Doing so again has no
// effect.
func (s *Session) Forward(port, at uint16) error { return s.running.forward(port, at) }

// Forward is Session.Forward for a server that a session of the group has left,
// until the group ends.
func (g *Group) Forward(port, at uint16) error { return g.running.forward(port, at) }

func (r *running) forward(port, at uint16) error {
	switch {
	case r.localhost == nil && (!r.outcome.Confined || r.policy.Network.Allowed):
		return ErrSharedLocalhost
	case r.localhost == nil:
		return ErrNoLocalhost
	}
	f := &r.forwards
	f.mu.Lock()
	defer f.mu.Unlock()
	key := [2]uint16{port, at}
	switch {
	case f.closed:
		return ErrEnded
	case f.open[key] != nil:
		return nil
	case len(f.open) >= maxForwards:
		return ErrManyPorts
	}
	opened, err := forward.Open(r.localhost.Dial, port, at)
	if err != nil {
		return err
	}
	if f.open == nil {
		f.open = map[[2]uint16]*forward.Forward{}
	}
	f.open[key] = opened
	return nil
}

// end closes every port.
func (f *forwards) end() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = true
	for _, open := range f.open {
		open.Close()
	}
	f.open = nil
}
