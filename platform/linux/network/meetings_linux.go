package network

import (
	"net"
	"net/netip"
	"sync"
	"time"
)

// way identifies a connection inside the namespace, as both its ends see it.
type way struct{ client, relay netip.AddrPort }

// meetings bring together the connections that the relay accepts and those that
// were made to the hosts for them. Either side may come first.
type meetings struct {
	mu      sync.Mutex // guards what follows
	coming  map[way]*outside
	waiting map[way]chan *outside
}

// meetTimeout is how long either side waits for the other, which needs some
// microseconds. A session can connect to the relay itself; nobody comes then.
const meetTimeout = 10 * time.Second

// maxWaiting bounds such connections. One more takes the place of another, so
// that nobody who keeps connecting takes the places of those that are expected.
const maxWaiting = 256

// announce says that a connection on this way is meant for the host.
func (m *meetings) announce(w way, o *outside) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if waits := m.waiting[w]; waits != nil {
		delete(m.waiting, w)
		waits <- o
		return
	}
	if m.coming == nil {
		m.coming = map[way]*outside{}
	}
	if earlier := m.coming[w]; earlier != nil {
		go earlier.abandon()
	}
	m.coming[w] = o
	time.AfterFunc(meetTimeout, func() {
		if m.drop(w, o) {
			o.abandon()
		}
	})
}

// drop takes back what was announced. It returns false if somebody has it.
func (m *meetings) drop(w way, o *outside) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.coming[w] != o {
		return false
	}
	delete(m.coming, w)
	return true
}

// meet returns what was announced for a connection; nil if nobody does.
func (m *meetings) meet(w way, closing <-chan struct{}) *outside {
	m.mu.Lock()
	if o := m.coming[w]; o != nil {
		delete(m.coming, w)
		m.mu.Unlock()
		return o
	}
	if m.waiting == nil {
		m.waiting = map[way]chan *outside{}
	}
	if m.waiting[w] != nil {
		m.mu.Unlock()
		return nil
	}
	if len(m.waiting) >= maxWaiting {
		for other, waits := range m.waiting { // any one, as they come in no order
			delete(m.waiting, other)
			close(waits)
			break
		}
	}
	comes := make(chan *outside, 1)
	m.waiting[w] = comes
	m.mu.Unlock()
	end := time.NewTimer(meetTimeout)
	defer end.Stop()
	select {
	case o := <-comes:
		return o
	case <-end.C:
	case <-closing:
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.waiting[w] == comes {
		delete(m.waiting, w)
	}
	select {
	case o := <-comes:
		return o
	default:
		return nil
	}
}

// wayOf is the way of an accepted connection.
func wayOf(conn *net.TCPConn) way {
	return way{client: plain(conn.RemoteAddr()), relay: plain(conn.LocalAddr())}
}

func plain(addr net.Addr) netip.AddrPort {
	to := addr.(*net.TCPAddr).AddrPort()
	return netip.AddrPortFrom(to.Addr().Unmap().WithZone(""), to.Port())
}
