package network

import (
	"context"
	"errors"
	"net"
	"os"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/hosts"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/outbound"
)

// User is who hears of a session's connections, and may be asked about them. A
// target is "host:port". The functions may be nil.
type User struct {
	// Refused is called for each refused connection. It must not block.
	Refused func(platform.Denial)
	// Connected is called for each connection that was made to a host. It must
	// not block. May be nil.
	Connected func(target, process string)
	// Crowded is called for each connection that is one too many for the
	// session; see outbound.NewQuota. It must not block.
	Crowded func(most int, shared bool)
	// Opener serves the connections to some hosts; see platform.Hooks.
	Opener platform.Opener
	// Ask waits until the user has decided about a target that the rules refuse,
	// or ctx ends.
	Ask func(context.Context, platform.Denial) (allowed bool)
	// Approved reports whether the user has allowed a target for the rest of the
	// session.
	Approved func(target string) bool
}

// reach connects to a host. The user is asked about what the rules refuse: about
// the target before anybody looks its name up, and then about an address that
// the name leads to. The rules are those of the session with what the user has
// allowed.
func (c *Connector) reach(
	ctx context.Context, to outbound.Target, program Program,
) (*net.TCPConn, *hosts.Rules, error) {
	const asks = 2
	dialer, before := outbound.Dialer{Rules: c.rules, Quota: c.quota}, ""
	for asked := 0; ; asked++ {
		conn, err := dialer.Dial(ctx, to)
		var refused *outbound.RefusedError
		if !errors.As(err, &refused) || refused.Refused() == before || asked == asks {
			return conn, dialer.Rules, err
		}
		before = refused.Refused()
		denial := denialOf(program, before)
		denial.Name = refused.Name()
		pattern, invalid := hosts.ParseAllowed(before)
		switch {
		case invalid != nil || !c.ask(ctx, denial):
			return nil, nil, err
		case ctx.Err() != nil:
			return nil, nil, ctx.Err()
		}
		dialer.Rules = dialer.Rules.With(pattern)
	}
}

func (c *Connector) approved(target string) bool {
	return c.user.Approved != nil && c.user.Approved(target)
}

// ask asks the user. If the process that waits ends, the answer is no.
func (c *Connector) ask(ctx context.Context, denial platform.Denial) bool {
	if c.user.Ask == nil || c.approved(denial.Target) {
		return c.user.Ask != nil
	}
	ctx, stop := untilExit(ctx, denial.PID)
	defer stop()
	return c.user.Ask(ctx, denial)
}

// untilExit returns a context that also ends when a process has ended. A caller
// in non-blocking mode believes to be connected while the user is asked, so
// nothing else tells that it is gone.
func untilExit(ctx context.Context, pid int) (context.Context, func()) {
	ctx, cancel := context.WithCancel(ctx)
	fd, err := unix.PidfdOpen(pid, unix.PIDFD_NONBLOCK)
	if err != nil {
		if pid > 0 && errors.Is(err, unix.ESRCH) {
			cancel()
		}
		return ctx, cancel
	}
	process := os.NewFile(uintptr(fd), "process")
	go func() {
		raw, err := process.SyscallConn()
		if err != nil {
			return
		}
		err = raw.Read(func(fd uintptr) bool {
			ready, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 0)
			return err == nil && ready > 0
		})
		if err == nil { // otherwise it was closed
			cancel()
		}
	}()
	return ctx, func() {
		process.Close()
		cancel()
	}
}
