package network

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"

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

// dial starts to connect. made is called once the connection was made, or not,
// and release once it has ended.
func (c *Connector) dial(to outbound.Target, program Program, made, release func()) *outside {
	o := &outside{to: to, program: program, done: make(chan struct{}), release: release}
	var ctx context.Context
	ctx, o.cancel = context.WithCancel(c.ctx)
	go func() {
		defer close(o.done)
		defer made()
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

// take takes a place for a connection of the session; nil if there are too many,
// in it or in the sidecar.
func (c *Connector) take() *outbound.Place {
	place := c.quota.Take()
	if place == nil {
		return nil
	}
	select {
	case slots() <- struct{}{}:
		return place
	default:
		place.Release()
		return nil
	}
}

// give gives the place of a connection back.
func (c *Connector) give(place *outbound.Place) {
	place.Release()
	<-slots()
}

// await waits until the host has answered. If the client ends its connection
// meanwhile, so does the attempt. A client that has sent something may have
// ended only its half, and still wait for an answer (HTTP clients do that), so
// its end does not count, but for a reset.
func (o *outside) await(client *net.TCPConn) {
	select {
	case <-o.done:
		return
	default:
	}
	raw, err := client.SyscallConn()
	if err != nil {
		o.cancel()
		<-o.done
		return
	}
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		err := raw.Read(func(fd uintptr) bool { return hasEnded(int(fd)) })
		if err == nil { // otherwise the host has answered
			o.cancel()
		}
	}()
	<-o.done
	_ = client.SetReadDeadline(time.Now())
	<-watched
	_ = client.SetReadDeadline(time.Time{})
}

// hasEnded reports whether a client has reset its connection, or ended it
// without having sent anything.
func hasEnded(fd int) bool {
	var one [1]byte
	n, _, err := unix.Recvfrom(fd, one[:], unix.MSG_PEEK|unix.MSG_DONTWAIT)
	switch {
	case errors.Is(err, unix.EAGAIN):
		return false
	case err != nil || n == 0:
		return true
	}
	return isClosed(fd)
}
