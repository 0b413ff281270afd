package network

import (
	"errors"
	"net"
	"sync"
	"time"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/outbound"
)

// accept takes the connections that reach a relay.
func (c *Connector) accept(relay *net.TCPListener) {
	for {
		conn, err := relay.AcceptTCP()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			// Too many open files. The caller sees a host that is slow to answer.
			select {
			case <-time.After(briefly):
			case <-c.ctx.Done():
			}
			continue
		}
		c.running.Go(func() { c.serve(conn) })
	}
}

// serve copies between the session and the host that the connection is for.
func (c *Connector) serve(conn *net.TCPConn) {
	defer conn.Close()
	o := c.meetings.meet(wayOf(conn), c.ctx.Done())
	if o == nil {
		_ = conn.SetLinger(0)
		return
	}
	defer o.abandon()
	if o.answer != nil {
		o.answer(conn)
		return
	}
	o.await(conn) // at the latest until the session ends
	if o.err != nil {
		c.reportRefusal(o)
		_ = conn.SetLinger(0)
		return
	}
	if !c.open.add(conn, o.conn) {
		return
	}
	defer c.open.remove(conn)
	outbound.Bound(conn, c.quota.Buffer())
	if opener := c.user.Opener; opener != nil && o.to.Name != "" && opener.Opens(o.to.Name, o.to.Port) {
		opener.Serve(c.ctx, conn, o.conn, o.to.Name, o.to.Port)
		return
	}
	judge := &outbound.Judge{Rules: o.rules, To: o.to, Approved: c.approved}
	if refusal := outbound.Relay(conn, o.conn, judge); refusal != nil {
		denial := denialOf(o.program, refusal.Target)
		denial.Greeting = refusal.Greeting
		c.report(denial)
	}
}

// connections are those that have to be closed when the session ends.
type connections struct {
	mu     sync.Mutex // guards what follows
	closed bool
	both   map[*net.TCPConn]*net.TCPConn
}

// add returns false if the session has ended.
func (c *connections) add(client, host *net.TCPConn) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return false
	}
	if c.both == nil {
		c.both = map[*net.TCPConn]*net.TCPConn{}
	}
	c.both[client] = host
	return true
}

func (c *connections) remove(client *net.TCPConn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.both, client)
}

func (c *connections) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	for client, host := range c.both {
		client.Close()
		host.Close()
	}
}
