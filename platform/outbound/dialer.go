package outbound

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/hosts"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/route"
)

// Target is where a session wants to connect to. Either Name or Addr is set.
type Target struct {
	// Name is in the form of hosts.Canonical.
	Name string
	Addr netip.Addr
	Port uint16
}

// String is "host:port".
func (t Target) String() string {
	if t.Name == "" {
		return netip.AddrPortFrom(t.Addr, t.Port).String()
	}
	return net.JoinHostPort(t.Name, strconv.Itoa(int(t.Port)))
}

// Dialer connects to targets. It uses the system's resolver.
type Dialer struct {
	Rules *hosts.Rules
	// Quota bounds what the session has asked for; nil bounds nothing.
	Quota *Quota
}

// timeout is when Linux itself gives up: after six repetitions of the first
// packet (tcp(7), tcp_syn_retries).
const timeout = 130 * time.Second

// RefusedError means that the rules refuse a target, or the address that an
// allowed name leads to.
type RefusedError struct {
	Target Target
	// Addr is the refused address of an allowed name; else invalid.
	Addr netip.Addr
}

// Refused is "host:port" of what the rules would have to allow: the target, or
// the address that it leads to.
func (e *RefusedError) Refused() string {
	if e.Addr.IsValid() {
		return netip.AddrPortFrom(e.Addr, e.Target.Port).String()
	}
	return e.Target.String()
}

// Name is the name that leads to the refused address; "" if the target itself
// was refused.
func (e *RefusedError) Name() string {
	if e.Addr.IsValid() {
		return e.Target.Name
	}
	return ""
}

// Error says what was refused.
func (e *RefusedError) Error() string {
	if e.Addr.IsValid() {
		return fmt.Sprintf("connect to %s: the name leads to %s, which is not allowed", e.Target, e.Addr)
	}
	return fmt.Sprintf("connect to %s: not allowed", e.Target)
}

// Allows reports whether the rules allow a target. A name may still lead to a
// refused address.
func (d *Dialer) Allows(to Target) bool {
	if to.Name != "" {
		return d.Rules.Name(to.Name, to.Port)
	}
	return d.Rules.Address(to.Addr, to.Port)
}

// Dial connects to a target, by IPv6 or IPv4, whichever answers first. The
// error is a *RefusedError if the rules refuse it; see Errno for others.
func (d *Dialer) Dial(ctx context.Context, to Target) (*net.TCPConn, error) {
	if !d.Allows(to) {
		return nil, &RefusedError{Target: to}
	}
	if to.Name == hosts.HostName {
		return d.dialHost(ctx, to)
	}
	host := to.Addr.String()
	if to.Name != "" {
		host = to.Name
		if strings.Contains(host, ".") {
			host += "." // or the resolver might try it below another domain
		}
		if d.Quota != nil {
			if err := d.Quota.Name(ctx, to.Name); err != nil {
				return nil, err
			}
		}
	}
	return d.dial(ctx, host, to.Port, func(addr netip.Addr) error {
		if to.Name == "" || d.Rules.Result(addr, to.Port) && (!isOurs(addr) || d.Rules.Address(addr, to.Port)) {
			return nil
		}
		return &RefusedError{Target: to, Addr: addr}
	})
}

// dialHost connects to a service on this machine's loopback interface.
func (d *Dialer) dialHost(ctx context.Context, to Target) (*net.TCPConn, error) {
	onlyLoopback := func(addr netip.Addr) error {
		if addr.IsLoopback() {
			return nil
		}
		return &RefusedError{Target: to, Addr: addr}
	}
	conn, err := d.dial(ctx, "127.0.0.1", to.Port, onlyLoopback)
	if errors.Is(err, syscall.ECONNREFUSED) {
		if conn, err6 := d.dial(ctx, "::1", to.Port, onlyLoopback); err6 == nil {
			return conn, nil
		}
	}
	return conn, err
}

// dial connects to a host. check is asked about each address right before it is
// used, so that no second look-up can give another.
func (d *Dialer) dial(
	ctx context.Context, host string, port uint16, check func(netip.Addr) error,
) (*net.TCPConn, error) {
	dialer := net.Dialer{Timeout: timeout, ControlContext: func(_ context.Context, _, address string,
		_ syscall.RawConn,
	) error {
		to, err := netip.ParseAddrPort(address)
		if err != nil {
			return fmt.Errorf("connect to %q: %w", address, err)
		}
		return check(to.Addr().Unmap())
	}}
	conn, err := dialer.DialContext(ctx, "tcp", net.JoinHostPort(host, strconv.Itoa(int(port))))
	if err != nil {
		return nil, err
	}
	tcp := conn.(*net.TCPConn)
	if d.Quota != nil {
		Bound(tcp, d.Quota.Buffer())
	}
	return tcp, nil
}

// Bound limits how many bytes the kernel holds for a connection, in each
// direction; 0 leaves that to the kernel. A peer that does not read, or reads
// slowly, would otherwise take megabytes of what all programs share (tcp_mem).
func Bound(conn *net.TCPConn, buffer int) {
	if buffer > 0 {
		_ = conn.SetReadBuffer(buffer) // otherwise the kernel's own bounds hold
		_ = conn.SetWriteBuffer(buffer)
	}
}

// isOurs reports whether an address is one of this machine's, or may be one.
func isOurs(addr netip.Addr) bool {
	own, err := route.IsOwn(addr)
	return own || err != nil
}

// Errno is the answer of connect(2) for an error of Dial.
func Errno(err error) syscall.Errno {
	var refused *RefusedError
	var errno syscall.Errno
	var name *net.DNSError
	switch {
	case errors.As(err, &refused):
		return syscall.EACCES
	case errors.As(err, &name) && name.IsTimeout, errors.Is(err, os.ErrDeadlineExceeded),
		errors.Is(err, context.DeadlineExceeded):
		return syscall.ETIMEDOUT
	case errors.As(err, &name):
		return syscall.EHOSTUNREACH
	case errors.As(err, &errno):
		return errno
	}
	return syscall.EHOSTUNREACH
}
