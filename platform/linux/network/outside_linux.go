package network

import (
	"context"
	"net"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/hosts"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/outbound"
)

// outside is a connection to a host that is being made, or was made, for one
// connect(2) of the session.
type outside struct {
	to      outbound.Target
	program Program
	cancel  context.CancelFunc
	release func()        // called once it has ended
	done    chan struct{} // closed when the rest is set
	conn    *net.TCPConn
	rules   *hosts.Rules // that allow it
	err     error
	// answer, if not nil, serves the caller in the place of a host.
	answer func(net.Conn)
}

// dial starts to connect. release is called once the connection has ended, or
// was not made.
func (c *Connector) dial(to outbound.Target, program Program, release func()) *outside {
	o := &outside{to: to, program: program, done: make(chan struct{}), release: release}
	var ctx context.Context
	ctx, o.cancel = context.WithCancel(c.ctx)
	go func() {
		defer close(o.done)
		o.conn, o.rules, o.err = c.reach(ctx, to, program)
		if o.err == nil && c.user.Connected != nil {
			c.user.Connected(to.String(), program.Name)
		}
	}()
	return o
}

// abandon ends it.
func (o *outside) abandon() {
	o.cancel()
	<-o.done
	if o.conn != nil {
		o.conn.Close()
	}
	o.release()
}

// slots bound the connections of all sessions together: each takes two
// descriptors of the sidecar, and other sessions need some, too.
var slots = sync.OnceValue(func() chan struct{} {
	const each, least, most = 4, 64, 16 << 10
	var limit unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &limit) != nil {
		return make(chan struct{}, least)
	}
	return make(chan struct{}, max(least, min(most, limit.Cur/each)))
})

// takeSlot returns false if there are too many connections.
func takeSlot() bool {
	select {
	case slots() <- struct{}{}:
		return true
	default:
		return false
	}
}

func freeSlot() { <-slots() }
