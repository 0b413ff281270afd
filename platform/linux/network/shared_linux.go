package network

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/hosts"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/hosts/loopback"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/linux/notify"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/linux/sockets"
)

// NewShared starts to serve a session that shares the machine's network. The
// relay listens on the machine's loopback interface, and resets each connection
// that the connector has not made itself. The session's connect(2) never
// reaches the kernel with an address of its own.
func NewShared(rules *hosts.Rules, user User, most int) (*Connector, error) {
	relay, err := net.ListenTCP("tcp4", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		return nil, fmt.Errorf("open relay: %w", err)
	}
	raw, err := relay.SyscallConn()
	if err != nil {
		relay.Close()
		return nil, fmt.Errorf("open relay: %w", err)
	}
	cookie, err := namespaceOf(raw)
	if err != nil {
		relay.Close()
		return nil, err
	}
	c := newConnector(rules, user, relay, cookie, most)
	c.shared = true
	if relay6, err := net.ListenTCP("tcp6", &net.TCPAddr{IP: net.IPv6loopback}); err == nil { // else there is no IPv6
		c.relay6 = relay6
	}
	var searched []string
	c.nameservers, searched = readResolverConfig()
	c.resolver = newResolver(c.names, rules, c.quota)
	c.resolver.searched = searched
	c.start()
	return c, nil
}

// connectShared decides about a connect(2) in the machine's network. The
// sidecar connects the caller's socket to the relay or to nothing: whatever the
// caller changes meanwhile, no other address reaches the kernel.
func (c *Connector) connectShared(call *sockets.Internet) (errno unix.Errno, answer bool) {
	to, ok := call.To()
	switch {
	case !isTCP(call.FD()):
		return unix.EACCES, true // passed to the session from outside
	case !ok && call.Dissolves():
		return call.Dissolve()
	case !ok:
		return unix.EINVAL, true
	case !isClosed(call.FD()):
		return call.ConnectTo(c.relayFor(to)) // connected, or about to be: the kernel says so
	case c.isResolver(to):
		return c.connect(call, to, c.answering())
	case own(to.Addr()):
		return unix.ECONNREFUSED, true // nobody can listen in the session
	}
	return c.decide(call, to)
}

// relayFor returns the relay's address for a socket that has to connect there.
func (c *Connector) relayFor(to netip.AddrPort) netip.AddrPort {
	if to.Addr().Is6() && c.relay6 != nil {
		return plain(c.relay6.Addr())
	}
	return c.at
}

// isResolver reports whether programs take an address for that of a DNS server.
func (c *Connector) isResolver(to netip.AddrPort) bool {
	return to.Port() == loopback.ResolverPort &&
		(to.Addr() == loopback.Resolver || slices.Contains(c.nameservers, to.Addr()))
}

// answering is a connection to the session's resolver.
func (c *Connector) answering() *outside {
	o := &outside{cancel: func() {}, release: func() {}, done: make(chan struct{}), answer: c.resolver.serveConn}
	close(o.done)
	return o
}

// Datagrams answers a socket(2) for UDP. The session gets an end of a pair of
// Unix sockets instead, which keeps the borders of messages and ignores their
// addresses. The other end leads to the resolver. So there is no socket in the
// session that could send a datagram to anybody else.
func (c *Connector) Datagrams(call *notify.Call) {
	place := c.take()
	if place == nil {
		call.Fail(unix.ENOBUFS)
		return
	}
	place.Made()
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		c.give(place)
		call.Fail(unix.ENOBUFS)
		return
	}
	theirs, file := pair[0], os.NewFile(uintptr(pair[1]), "resolver")
	defer unix.Close(theirs)
	conn, err := net.FileConn(file)
	file.Close()
	if err != nil {
		c.give(place)
		call.Fail(unix.ENOBUFS)
		return
	}
	flags := int(call.Args[1])
	cookie, err := unix.GetsockoptUint64(theirs, unix.SOL_SOCKET, unix.SO_COOKIE)
	if err == nil && flags&unix.SOCK_NONBLOCK == 0 {
		err = unix.SetNonblock(theirs, false)
	}
	if err == nil {
		c.datagrams.Store(cookie, &datagrams{v6: int32(call.Args[0]) == unix.AF_INET6})
		err = call.ReturnFD(theirs, flags&unix.SOCK_CLOEXEC != 0)
	}
	if err != nil {
		c.datagrams.Delete(cookie)
		conn.Close()
		c.give(place)
		call.Fail(unix.EMFILE)
		return
	}
	c.resolver.serveDatagrams(conn, func() {
		c.datagrams.Delete(cookie)
		c.give(place)
	})
}

// writeTimeout is how long an answer waits for a client to read earlier ones.
const writeTimeout = 100 * time.Millisecond

// serveDatagrams answers on a connection that keeps the borders of messages,
// until it ends; then it calls ended. A client that does not read its answers
// loses them.
func (r *Resolver) serveDatagrams(conn net.Conn, ended func()) {
	r.running.Go(func() {
		defer ended()
		defer conn.Close()
		defer context.AfterFunc(r.ctx, func() { conn.Close() })()
		buffer := make([]byte, mostUDP)
		for {
			n, err := conn.Read(buffer)
			if err != nil {
				return
			}
			q, ok := readQuery(buffer[:n])
			if !ok {
				continue
			}
			r.resolve(q, func(message []byte) {
				if len(message) > q.room {
					message = q.truncated()
				}
				_ = conn.SetWriteDeadline(time.Now().Add(writeTimeout))
				_, _ = conn.Write(message)
			})
		}
	})
}

// datagrams is what a program believes of a socket of UDP.
type datagrams struct {
	v6   bool
	peer atomic.Pointer[netip.AddrPort] // nil without a connection
}

func (c *Connector) findDatagrams(fd int) (d *datagrams, cookie uint64) {
	cookie, err := unix.GetsockoptUint64(fd, unix.SOL_SOCKET, unix.SO_COOKIE)
	if err != nil {
		return nil, 0
	}
	found, is := c.datagrams.Load(cookie)
	if !is {
		return nil, 0
	}
	return found.(*datagrams), cookie
}

// Datagram returns what a program believes of a socket that Datagrams has made.
// Messages come from its peer, or else from the first DNS server, which the
// program has probably asked.
func (c *Connector) Datagram(fd int) (sockets.Datagram, bool) {
	d, cookie := c.findDatagrams(fd)
	if d == nil {
		return sockets.Datagram{}, false
	}
	const firstPort, ports = 49152, 16384 // for clients (RFC 6335)
	of := sockets.Datagram{V6: d.v6}
	of.Own = netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), uint16(firstPort+cookie%ports))
	for _, server := range c.nameservers {
		if of.From = netip.AddrPortFrom(server, loopback.ResolverPort); d.v6 || server.Is4() {
			break
		}
	}
	if peer := d.peer.Load(); peer != nil {
		of.Peer, of.From = *peer, *peer
		if d.v6 && peer.Addr().Is6() {
			of.Own = netip.AddrPortFrom(netip.IPv6Loopback(), of.Own.Port())
		}
	}
	return of, true
}

// ConnectDatagrams answers a connect(2) of such a socket. All that is sent
// arrives at the resolver, whatever the address is. The loopback interface is
// included because some libraries try so which protocols a machine has.
func (c *Connector) ConnectDatagrams(call *notify.Call, fd int, to netip.AddrPort) unix.Errno {
	d, _ := c.findDatagrams(fd)
	switch {
	case d == nil:
		return unix.EBADF
	case !to.IsValid():
		d.peer.Store(nil)
		return 0
	case to.Port() == loopback.ResolverPort || to.Addr().IsLoopback():
		d.peer.Store(&to)
		return 0
	case !own(to.Addr()) && !loopback.Own.Contains(to.Addr()):
		c.reportDatagram(call, to)
	}
	return unix.ECONNREFUSED
}

// readResolverConfig returns which DNS servers programs ask, and below which
// domains they look for names (resolv.conf(5)).
func readResolverConfig() (servers []netip.Addr, searched []string) {
	file, err := os.Open("/etc/resolv.conf")
	if err != nil {
		return []netip.Addr{localServer}, nil
	}
	defer file.Close()
	const most = 64 << 10
	lines := bufio.NewScanner(io.LimitReader(file, most))
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		switch {
		case len(fields) < 2:
		case fields[0] == "nameserver":
			if addr, err := netip.ParseAddr(fields[1]); err == nil {
				servers = append(servers, addr.Unmap().WithZone(""))
			}
		case fields[0] == "search", fields[0] == "domain":
			searched = nil
			for _, domain := range fields[1:] {
				if name, ok := hosts.Canonical(domain); ok && name != "" {
					searched = append(searched, name)
				}
			}
		}
	}
	if len(servers) == 0 {
		servers = []netip.Addr{localServer}
	}
	return servers, searched
}

// localServer is whom programs ask if the configuration names nobody.
var localServer = netip.AddrFrom4([4]byte{127, 0, 0, 1})
