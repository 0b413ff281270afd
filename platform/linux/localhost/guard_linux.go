package localhost

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/linux/notify"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/linux/sockets"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/route"
)

// Options say what one session reaches.
type Options struct {
	// Project is the real path of the session's project, or of the repository that
	// it is in. Without one, the session reaches what it listens with itself.
	Project string
	// None is true if it does not even reach that, nor the machine's resolver.
	None bool
	// Ports are those that the settings open.
	Ports []uint16
	// Notes are shared by the sessions of this sidecar.
	Notes *Notes
	// Refused is called for each refused connection. It must not block. May be
	// nil.
	Refused func(platform.Denial)
}

// Guard decides for one session. Its methods may be called from several
// goroutines.
type Guard struct {
	options Options
	ports   map[uint16]bool
	cookie  uint64 // of our network namespace
}

// New returns the guard of a session that shares our network namespace.
func New(o Options) (*Guard, error) {
	cookie, err := ownNamespace()
	if err != nil {
		return nil, err
	}
	if o.Project == "" || o.Notes == nil {
		o.Notes = &Notes{}
	}
	g := &Guard{options: o, ports: map[uint16]bool{}, cookie: cookie}
	for _, port := range o.Ports {
		g.ports[port] = true
	}
	return g, nil
}

// Available returns nil if this machine's kernel says what a guard needs to know.
func Available() error {
	if _, err := ownNamespace(); err != nil {
		return err
	}
	if _, err := listeners(0); err != nil {
		return fmt.Errorf("the kernel does not list TCP sockets (CONFIG_INET_TCP_DIAG), so own ones are unknown: %w",
			err)
	}
	if _, err := route.IsOwn(netip.AddrFrom4([4]byte{192, 0, 2, 1})); err != nil { // an address of documents
		return fmt.Errorf("the kernel does not say which addresses are this machine's: %w", err)
	}
	return nil
}

func ownNamespace() (uint64, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, err
	}
	defer unix.Close(fd)
	cookie, err := unix.GetsockoptUint64(fd, unix.SOL_SOCKET, unix.SO_NETNS_COOKIE)
	if err != nil {
		return 0, fmt.Errorf("identify the network namespace: %w", err)
	}
	return cookie, nil
}

// States of TCP (include/net/tcp_states.h).
const (
	stateEstablished, stateSynSent, stateClose, stateListen = 1, 2, 7, 10
)

// A server that asks for at least fewest places in its queue gets longest, or as
// many as the kernel allows (net.core.somaxconn; since Linux 5.4 it is 4096). With a
// full queue the kernel connects again later, which connectOwn does not allow.
// Programs that ask for fewer places want to see it full.
const (
	fewest  = 5
	longest = 1024
)

// Listen notes the socket of a listen(2). It notes the socket, not its number, so
// it does not matter what the caller changes meanwhile. A socket that listens
// already came from outside, or has been noted.
func (g *Guard) Listen(call *notify.Call) {
	fd, err := call.Descriptor(int(int32(call.Args[0])))
	if err != nil {
		call.Continue()
		return
	}
	defer unix.Close(fd)
	cookie, err := unix.GetsockoptUint64(fd, unix.SOL_SOCKET, unix.SO_COOKIE)
	is := state(fd)
	if err != nil || is != stateClose && is != stateListen || !call.Valid() {
		call.Continue()
		return
	}
	if is == stateClose {
		g.options.Notes.add(g.options.Project, cookie, live)
	}
	backlog := int(int32(call.Args[1]))
	if backlog < fewest || backlog >= longest || !g.options.Notes.has(g.options.Project, cookie) {
		call.Continue() // as it is
		return
	}
	if err := unix.Listen(fd, longest); err != nil {
		var errno unix.Errno
		if !errors.As(err, &errno) {
			errno = unix.EIO
		}
		call.Fail(errno)
		return
	}
	call.Succeed()
}

// state is the state of a socket of TCP; 0 if it is none.
func state(fd int) uint8 {
	info, err := unix.GetsockoptTCPInfo(fd, unix.IPPROTO_TCP, unix.TCP_INFO)
	if err != nil {
		return 0
	}
	return info.State
}

func live() (map[uint64]bool, error) {
	all, err := listeners(0)
	cookies := map[uint64]bool{}
	for _, one := range all {
		cookies[one.cookie] = true
	}
	return cookies, err
}

// Connect decides about a connect(2) of the session; see sockets.Mediator. The
// sidecar connects the caller's socket to the address that was decided about.
func (g *Guard) Connect(call *sockets.Internet) (errno unix.Errno, answer bool) {
	if kind, err := unix.GetsockoptInt(call.FD(), unix.SOL_SOCKET, unix.SO_TYPE); err != nil {
		return unix.EACCES, true
	} else if kind == unix.SOCK_DGRAM || kind == unix.SOCK_RAW {
		return call.Connect() // not of TCP; see docs/design/localhost.md
	}
	if cookie, err := unix.GetsockoptUint64(call.FD(), unix.SOL_SOCKET, unix.SO_NETNS_COOKIE); err != nil ||
		cookie != g.cookie {
		return unix.EACCES, true // passed to the session from outside
	}
	to, ok := call.To()
	switch {
	case !ok && call.Dissolves():
		return call.Dissolve()
	case !ok:
		// The kernel takes an IPv6 address without its scope, too, which has been
		// out of use since RFC 2553.
		return unix.EAFNOSUPPORT, true
	}
	own, err := route.IsOwn(to.Addr())
	switch {
	case err != nil:
		g.report(call, to)
		return unix.EACCES, true
	case !own || g.ports[to.Port()]:
		return call.Connect()
	case !g.options.None && g.isResolver(to):
		return call.Connect()
	}
	return g.connectOwn(call, to)
}

// The kernel repeats the first packet of a connection after a second. Until then
// only a program that listens when connect(2) is called can get it.
const patience = 150 * time.Millisecond

// unlimited is how long the kernel waits by default (tcp(7), tcp_syn_retries).
const unlimited = 127 * time.Second

// connectOwn connects to what sessions of the project listen with. It never
// leaves a connection in the making: whoever listens at the port later would get
// it. So a listener whose queue is full is tried again, as long as the caller
// waits.
func (g *Guard) connectOwn(call *sockets.Internet, to netip.AddrPort) (errno unix.Errno, answer bool) {
	switch state(call.FD()) {
	case stateClose:
	case stateEstablished:
		return unix.EISCONN, true
	default:
		return unix.EALREADY, true
	}
	limit := call.Timeout(unlimited)
	for deadline := time.Now().Add(limit); ; {
		switch found, err := g.who(to); {
		case err != nil || found == foreign:
			g.report(call, to)
			return unix.EACCES, true
		case found == nobody:
			return unix.ECONNREFUSED, true
		}
		// With it, the kernel would connect only when the caller writes.
		_ = unix.SetsockoptInt(call.FD(), unix.IPPROTO_TCP, unix.TCP_FASTOPEN_CONNECT, 0)
		end := watch(call)
		errno, valid := call.ConnectOnce()
		waited := error(nil)
		if valid && state(call.FD()) == stateSynSent {
			_, waited = call.Wait(call.FD(), unix.EPOLLOUT, patience)
		}
		dissolved, failed := end()
		switch {
		case !valid || dissolved && errors.Is(waited, notify.ErrGone):
			return 0, false
		case failed != 0:
			return unix.EACCES, true
		case dissolved && waited != nil:
			return unix.EINTR, true
		case dissolved && (limit == 0 || time.Now().After(deadline)):
			return unix.ETIMEDOUT, true
		case dissolved:
			continue
		}
		if found, err := g.who(to); err != nil || found == foreign { // it took the port meanwhile
			_ = unix.Shutdown(call.FD(), unix.SHUT_RDWR)
			g.report(call, to)
			return unix.EACCES, true
		}
		if errno == unix.EINPROGRESS && limit > 0 { // a blocking caller has waited
			pending, err := unix.GetsockoptInt(call.FD(), unix.SOL_SOCKET, unix.SO_ERROR)
			if err != nil {
				return unix.EACCES, true
			}
			return unix.Errno(pending), true
		}
		return errno, true
	}
}

// watch dissolves a connection that is in the making for longer than patience.
// It does so while the caller's thread is gone, and while connect(2) waits
// because another thread has changed the socket's mode. end dissolves one that
// is in the making still, and must be called. dissolved is true if any was, and
// failed is why one could not be.
func watch(call *sockets.Internet) (end func() (dissolved bool, failed unix.Errno)) {
	var mu sync.Mutex // guards what follows
	var timer *time.Timer
	ended, dissolved, failed := false, false, unix.Errno(0)
	abandon := func() {
		if state(call.FD()) == stateSynSent {
			dissolved, failed = true, call.Abandon()
		}
	}
	mu.Lock()
	defer mu.Unlock()
	timer = time.AfterFunc(patience, func() {
		mu.Lock()
		defer mu.Unlock()
		if !ended { // else the descriptor may be another's
			abandon()
			timer.Reset(patience)
		}
	})
	return func() (bool, unix.Errno) {
		mu.Lock()
		defer mu.Unlock()
		ended = true
		timer.Stop()
		abandon()
		return dissolved, failed
	}
}

// ownership says who listens at an address.
type ownership int

const (
	nobody  ownership = iota
	ours              // sessions of the project alone
	foreign           // somebody else, perhaps beside them
)

func (g *Guard) who(to netip.AddrPort) (ownership, error) {
	all, err := listeners(to.Port())
	if err != nil {
		return foreign, err
	}
	found := nobody
	for _, one := range reached(all, to.Addr()) {
		if g.options.None || !g.options.Notes.has(g.options.Project, one.cookie) {
			return foreign, nil
		}
		found = ours
	}
	return found, nil
}

// reached are the listeners that the kernel may give a connection to. It prefers
// those at exactly this address, but a session may close its own there right
// before the connection. So those at all addresses count as well.
func reached(all []listener, to netip.Addr) []listener {
	if to.IsUnspecified() { // means the loopback address
		loopback := netip.AddrFrom4([4]byte{127, 0, 0, 1})
		if to.Is6() {
			loopback = netip.IPv6Loopback()
		}
		to = loopback
	}
	var list []listener
	for _, one := range all {
		at := one.at.Addr()
		if at == to || at.IsUnspecified() && (at.Is4() == to.Is4() || at.Is6() && !one.only6) {
			list = append(list, one)
		}
	}
	return list
}

// isResolver reports whether an address is that of a DNS server which programs
// ask.
func (g *Guard) isResolver(to netip.AddrPort) bool {
	const dns = 53
	if to.Port() != dns {
		return false
	}
	for _, server := range nameservers() {
		if server == to.Addr() {
			return true
		}
	}
	return false
}

// nameservers are the DNS servers of resolv.conf(5). Without any, programs ask
// this machine.
func nameservers() []netip.Addr {
	list := []netip.Addr{}
	if file, err := os.Open("/etc/resolv.conf"); err == nil {
		defer file.Close()
		const most = 64 << 10
		for lines := bufio.NewScanner(io.LimitReader(file, most)); lines.Scan(); {
			fields := strings.Fields(lines.Text())
			if len(fields) < 2 || fields[0] != "nameserver" {
				continue
			}
			if addr, err := netip.ParseAddr(fields[1]); err == nil {
				list = append(list, addr.Unmap().WithZone(""))
			}
		}
	}
	if len(list) == 0 {
		list = append(list, netip.AddrFrom4([4]byte{127, 0, 0, 1}))
	}
	return append(list, netip.AddrFrom4([4]byte{127, 0, 0, 53}))
}

func (g *Guard) report(call *sockets.Internet, to netip.AddrPort) {
	if g.options.Refused == nil {
		return
	}
	denial := platform.Denial{Access: platform.RefusedConnect, Target: to.String(), Count: 1}
	if pid, process, err := call.Process(); err == nil {
		denial.PID, denial.Process = pid, process
	}
	g.options.Refused(denial)
}
