package network

import (
	"container/list"
	"encoding/binary"
	"net/netip"
	"sync"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/hosts/loopback"
)

// Names are the names that a session has looked up, with their addresses. Those
// that were not used for the longest time are forgotten. Its methods may be
// called from several goroutines.
type Names struct {
	mu     sync.Mutex // guards what follows
	most   int
	next   uint32
	byName map[string]*named
	byAddr map[netip.Addr]*named
	idle   *list.List // of *named without connections, the latest in front
}

type named struct {
	name        string
	addr        netip.Addr
	connections int
	place       *list.Element // in Names.idle; nil while there are connections
}

// NewNames returns an empty table of at most so many names.
func NewNames(most int) *Names {
	return &Names{most: most, byName: map[string]*named{}, byAddr: map[netip.Addr]*named{}, idle: list.New()}
}

// Address returns the address of a name. It returns false if all addresses are
// in use.
func (n *Names) Address(name string) (netip.Addr, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if known := n.byName[name]; known != nil {
		if known.place != nil {
			n.idle.MoveToFront(known.place)
		}
		return known.addr, true
	}
	if len(n.byName) >= n.most {
		oldest := n.idle.Back()
		if oldest == nil {
			return netip.Addr{}, false
		}
		forgotten := n.idle.Remove(oldest).(*named)
		delete(n.byName, forgotten.name)
		delete(n.byAddr, forgotten.addr)
	}
	added := &named{name: name, addr: n.free()}
	n.byName[name], n.byAddr[added.addr] = added, added
	added.place = n.idle.PushFront(added)
	return added.addr, true
}

// free returns the next address without a name.
func (n *Names) free() netip.Addr {
	first := binary.BigEndian.Uint32(loopback.Own.Addr().AsSlice())
	size, skipped := uint32(1)<<(32-loopback.Own.Bits()), uint32(1)<<(32-loopback.Reserved.Bits())
	for {
		n.next = max((n.next+1)%(size-1), skipped) // without the last, which is a broadcast address
		addr := netip.AddrFrom4([4]byte(binary.BigEndian.AppendUint32(nil, first+n.next)))
		if n.byAddr[addr] == nil {
			return addr
		}
	}
}

// Name returns the name of an address.
func (n *Names) Name(addr netip.Addr) (string, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	known := n.byAddr[addr]
	if known == nil {
		return "", false
	}
	return known.name, true
}

// Hold returns the name of an address and keeps both together until release is
// called. A connection calls that when it has ended.
func (n *Names) Hold(addr netip.Addr) (name string, release func(), found bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	known := n.byAddr[addr]
	if known == nil {
		return "", nil, false
	}
	if known.connections++; known.place != nil {
		n.idle.Remove(known.place)
		known.place = nil
	}
	return known.name, sync.OnceFunc(func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		if known.connections--; known.connections == 0 {
			known.place = n.idle.PushFront(known)
		}
	}), true
}
