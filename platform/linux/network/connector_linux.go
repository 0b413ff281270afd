package network

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/hosts"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/hosts/loopback"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/linux/notify"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/linux/sockets"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/outbound"
)

// maxNames bounds the names that a session has addresses for. An address is
// given to another name only after some 130,000 others.
const maxNames = 1 << 14

// Files are sockets in the session's network namespace, made by the stage.
type Files struct {
	// UDP and TCP are the resolver's.
	UDP, TCP *os.File
	// Relay accepts the connections that the session believes to be to hosts.
	Relay *os.File
}

// Close closes every file.
func (f Files) Close() {
	for _, file := range []*os.File{f.UDP, f.TCP, f.Relay} {
		if file != nil {
			file.Close()
		}
	}
}

// Program is the process that wanted to connect: its id on the host, or 0, and
// its own name for itself.
type Program struct {
	PID  int
	Name string
}

// Connector connects one session to the hosts that its rules allow.
type Connector struct {
	rules    *hosts.Rules
	user     User
	names    *Names
	resolver *Resolver
	relay    *net.TCPListener
	at       netip.AddrPort // the relay's
	cookie   uint64         // of the session's network namespace
	meetings meetings
	quota    *outbound.Quota

	// What follows is for a session that shares the machine's network; see
	// NewShared.
	shared      bool
	relay6      *net.TCPListener // nil without IPv6
	nameservers []netip.Addr     // that programs ask
	datagrams   sync.Map         // of *datagrams, by the cookies of sockets

	ctx     context.Context
	stop    context.CancelFunc
	running sync.WaitGroup
	open    connections
}

// New starts to serve a session, with most connections at a time; see
// outbound.NewQuota. It takes ownership of the files, also on an error.
func New(rules *hosts.Rules, files Files, user User, most int) (*Connector, error) {
	defer files.Close()
	raw, err := files.Relay.SyscallConn()
	if err != nil {
		return nil, err
	}
	cookie, err := namespaceOf(raw)
	if err != nil {
		return nil, err
	}
	udp, err := net.FilePacketConn(files.UDP)
	if err != nil {
		return nil, fmt.Errorf("take over resolver: %w", err)
	}
	tcp, err := net.FileListener(files.TCP)
	if err != nil {
		udp.Close()
		return nil, fmt.Errorf("take over resolver: %w", err)
	}
	listener, err := net.FileListener(files.Relay)
	relay, is := listener.(*net.TCPListener)
	if err != nil || !is {
		udp.Close()
		tcp.Close()
		return nil, errors.Join(errors.New("take over relay: not a TCP socket"), err)
	}
	c := newConnector(rules, user, relay, cookie, most)
	c.resolver = NewResolver(c.names, rules, c.quota, udp, tcp)
	c.start()
	return c, nil
}

func newConnector(rules *hosts.Rules, user User, relay *net.TCPListener, cookie uint64, most int) *Connector {
	c := &Connector{
		rules: rules, user: user, names: NewNames(maxNames), relay: relay, at: plain(relay.Addr()), cookie: cookie,
		quota: outbound.NewQuota(most, cap(slots()), user.Crowded),
	}
	c.ctx, c.stop = context.WithCancel(context.Background())
	return c
}

func (c *Connector) start() {
	c.running.Go(func() { c.accept(c.relay) })
	if c.relay6 != nil {
		c.running.Go(func() { c.accept(c.relay6) })
	}
}

// Close ends all connections.
func (c *Connector) Close() {
	c.stop()
	c.relay.Close()
	if c.relay6 != nil {
		c.relay6.Close()
	}
	c.open.close()
	c.resolver.Close()
	c.running.Wait()
}

// namespaceOf identifies the network namespace of a socket (SO_NETNS_COOKIE,
// Linux 5.14).
func namespaceOf(socket syscall.RawConn) (cookie uint64, err error) {
	controlled := socket.Control(func(fd uintptr) {
		cookie, err = unix.GetsockoptUint64(int(fd), unix.SOL_SOCKET, unix.SO_NETNS_COOKIE)
	})
	if err = errors.Join(err, controlled); err != nil {
		return 0, fmt.Errorf("identify the network namespace of a socket: %w", err)
	}
	return cookie, nil
}

// briefly is how long a caller in non-blocking mode is held, so that it gets
// the real error of a host that answers soon.
const briefly = 150 * time.Millisecond

// unlimited is longer than any attempt to connect.
const unlimited = time.Hour

// Connect decides about a connect(2) of the session; see sockets.Mediator.
func (c *Connector) Connect(call *sockets.Internet) (errno unix.Errno, answer bool) {
	cookie, err := unix.GetsockoptUint64(call.FD(), unix.SOL_SOCKET, unix.SO_NETNS_COOKIE)
	if err != nil || cookie != c.cookie {
		return unix.EACCES, true // passed to the session from outside
	}
	if c.shared {
		return c.connectShared(call)
	}
	to, ok := call.To()
	if !ok || own(to.Addr()) {
		return call.Connect()
	}
	if !isTCP(call.FD()) {
		if !loopback.Own.Contains(to.Addr()) {
			c.reportDatagram(call, to)
		}
		return call.Connect() // which finds no way out
	}
	if !isClosed(call.FD()) {
		return call.Connect() // connected, or about to be: the kernel says so
	}
	return c.decide(call, to)
}

// decide decides about a connection to a host, and makes it.
func (c *Connector) decide(call *sockets.Internet, to netip.AddrPort) (errno unix.Errno, answer bool) {
	target, release := outbound.Target{Addr: to.Addr(), Port: to.Port()}, func() {}
	if loopback.Own.Contains(to.Addr()) {
		name, free, found := c.names.Hold(to.Addr())
		if !found {
			return unix.EHOSTUNREACH, true
		}
		target, release = outbound.Target{Name: name, Port: to.Port()}, free
	}
	program := programOf(call)
	if c.user.Ask == nil && !(&outbound.Dialer{Rules: c.rules}).Allows(target) {
		release()
		c.report(denialOf(program, target.String()))
		return unix.EACCES, true
	}
	place := c.take()
	if place == nil {
		release()
		// As if there were no port left. Programs with non-blocking sockets take
		// EAGAIN for "in progress".
		return unix.EADDRNOTAVAIL, true
	}
	return c.connect(call, to, c.dial(target, program, place.Made, func() {
		release()
		c.give(place)
	}))
}

// connect waits for the host, and connects the caller to the relay.
func (c *Connector) connect(call *sockets.Internet, to netip.AddrPort, o *outside) (errno unix.Errno, answer bool) {
	early, answer, proceed := c.await(call, o)
	if !proceed {
		go o.abandon()
		return early, answer
	}
	relay := netip.AddrPortFrom(loopback.Gateway, c.at.Port())
	switch {
	case c.shared:
		relay = c.relayFor(to)
	case loopback.Own.Contains(to.Addr()):
		relay = netip.AddrPortFrom(to.Addr(), c.at.Port()) // so that the caller finds its peer's address unchanged
	case to.Addr().Is6():
		relay = netip.AddrPortFrom(netip.IPv6Loopback(), c.at.Port())
	}
	// With it, the kernel would connect only when the caller writes.
	_ = unix.SetsockoptInt(call.FD(), unix.IPPROTO_TCP, unix.TCP_FASTOPEN_CONNECT, 0)
	errno, answer = call.ConnectTo(relay)
	if !answer || errno != 0 && errno != unix.EINPROGRESS {
		go o.abandon()
		return errno, answer
	}
	client, err := addressOf(call.FD())
	if err != nil {
		go o.abandon()
		return unix.EACCES, true
	}
	c.meetings.announce(way{client: client, relay: relay}, o)
	if early != 0 {
		return early, true
	}
	return errno, true
}

// await waits until the user, if somebody asks, and the host have answered. If
// proceed is true, the caller is to be connected to the relay, although they may
// not have answered yet; then its connection is reset if the answer is no. So a
// caller in non-blocking mode is not held for long. One that a signal interrupts
// finds its socket connecting, as connect(2) promises.
func (c *Connector) await(call *sockets.Internet, o *outside) (errno unix.Errno, answer, proceed bool) {
	limit := call.Timeout(unlimited)
	blocking := limit > 0
	if !blocking {
		limit = briefly
	}
	_, err := call.Await(o.done, limit)
	select {
	case <-o.done:
		if o.err == nil {
			return 0, true, true
		}
		c.reportRefusal(o)
		return outbound.Errno(o.err), true, false
	default:
	}
	switch {
	case errors.Is(err, notify.ErrGone):
		return 0, false, false
	case !blocking || errors.Is(err, unix.EAGAIN): // too many calls wait
		return 0, true, true
	case errors.Is(err, unix.EINTR):
		return unix.EINTR, true, true
	}
	return unix.EINPROGRESS, true, true // SO_SNDTIMEO has run out (socket(7))
}

func denialOf(program Program, target string) platform.Denial {
	return platform.Denial{
		Access: platform.RefusedConnect, Target: target, PID: program.PID, Process: program.Name, Count: 1,
	}
}

func (c *Connector) report(denial platform.Denial) {
	if c.user.Refused != nil {
		c.user.Refused(denial)
	}
}

// reportDatagram reports a socket that is not of TCP.
func (c *Connector) reportDatagram(call interface{ Process() (int, string, error) }, to netip.AddrPort) {
	denial := denialOf(programOf(call), to.String())
	denial.Datagram = true
	c.report(denial)
}

// reportRefusal reports what the user has refused, or an allowed name that leads
// to a refused address.
func (c *Connector) reportRefusal(o *outside) {
	var refused *outbound.RefusedError
	if errors.As(o.err, &refused) {
		denial := denialOf(o.program, refused.Refused())
		denial.Name = refused.Name()
		c.report(denial)
	}
}

func programOf(call interface{ Process() (int, string, error) }) Program {
	pid, name, err := call.Process()
	if err != nil {
		return Program{}
	}
	return Program{PID: pid, Name: name}
}

// own reports whether an address is the session's own, so that the kernel finds
// nobody else there.
func own(addr netip.Addr) bool {
	return addr.IsLoopback() || addr.IsUnspecified() || loopback.Reserved.Contains(addr)
}

func isTCP(fd int) bool {
	kind, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TYPE)
	protocol, failed := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_PROTOCOL)
	return errors.Join(err, failed) == nil && kind == unix.SOCK_STREAM &&
		(protocol == unix.IPPROTO_TCP || protocol == unix.IPPROTO_MPTCP)
}

// isClosed reports whether a socket has no connection, and does not make one.
func isClosed(fd int) bool {
	const closed = 7 // TCP_CLOSE (include/net/tcp_states.h)
	info, err := unix.GetsockoptTCPInfo(fd, unix.IPPROTO_TCP, unix.TCP_INFO)
	return err != nil || info.State == closed
}

// addressOf returns a socket's own address.
func addressOf(fd int) (netip.AddrPort, error) {
	name, err := unix.Getsockname(fd)
	if err != nil {
		return netip.AddrPort{}, err
	}
	address := plainSockaddr(name)
	if !address.IsValid() {
		return netip.AddrPort{}, errors.New("not an internet socket")
	}
	return address, nil
}

// plainSockaddr is an address without IPv6's form of IPv4; invalid if it is no
// internet address.
func plainSockaddr(name unix.Sockaddr) netip.AddrPort {
	switch address := name.(type) {
	case *unix.SockaddrInet4:
		return netip.AddrPortFrom(netip.AddrFrom4(address.Addr), uint16(address.Port))
	case *unix.SockaddrInet6:
		return netip.AddrPortFrom(netip.AddrFrom16(address.Addr).Unmap(), uint16(address.Port))
	}
	return netip.AddrPort{}
}
