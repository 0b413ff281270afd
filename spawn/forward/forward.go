// Package forward shows a server of a session at a port of this machine's
// loopback interface, such as to the user's browser.
//
// [Open] listens. Each connection is copied to one that the caller makes inside
// the session.
package forward

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"syscall"
	"time"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/outbound"
)

// Dial connects to a port inside the session.
type Dial func(ctx context.Context, port uint16) (*net.TCPConn, error)

// Errors of Open, in words for the user.
var (
	ErrInUse      = errors.New("another program uses it")
	ErrPrivileged = errors.New("only root may use it")
)

// maxConnections bounds those of one port at a time. Each takes two descriptors.
const maxConnections = 256

// Forward is an open port.
type Forward struct {
	listener *net.TCPListener
	dial     Dial
	port     uint16 // inside

	ctx     context.Context
	stop    context.CancelFunc
	running sync.WaitGroup
	slots   chan struct{}

	mu    sync.Mutex // guards what follows
	conns map[*net.TCPConn]bool
}

// Open listens at a port of 127.0.0.1, and connects whoever comes there to the
// port inside.
func Open(dial Dial, port, at uint16) (*Forward, error) {
	listener, err := net.ListenTCP("tcp4", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: int(at)})
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		err = ErrInUse
	case errors.Is(err, syscall.EACCES):
		err = ErrPrivileged
	}
	if err != nil {
		return nil, fmt.Errorf("open port %d: %w", at, err)
	}
	f := &Forward{
		listener: listener, dial: dial, port: port, slots: make(chan struct{}, maxConnections),
		conns: map[*net.TCPConn]bool{},
	}
	f.ctx, f.stop = context.WithCancel(context.Background())
	f.running.Go(f.accept)
	return f, nil
}

// Close closes the port and its connections.
func (f *Forward) Close() {
	f.stop()
	f.stopListening()
	f.listener.Close()
	f.mu.Lock()
	for conn := range f.conns {
		conn.Close()
	}
	f.mu.Unlock()
	f.running.Wait()
}

// stopListening frees the port at once. A process that is being started has a
// copy of the listener until it executes its program, and the kernel would
// still accept connections.
func (f *Forward) stopListening() {
	if raw, err := f.listener.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) { _ = syscall.Shutdown(int(fd), syscall.SHUT_RDWR) })
	}
}

// retry is the pause after an error of accept, such as too many open files.
const retry = 100 * time.Millisecond

func (f *Forward) accept() {
	for {
		conn, err := f.listener.AcceptTCP()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			select {
			case <-time.After(retry):
			case <-f.ctx.Done():
			}
			continue
		}
		select {
		case f.slots <- struct{}{}:
			f.running.Go(func() {
				defer func() { <-f.slots }()
				f.serve(conn)
			})
		default:
			refuse(conn)
		}
	}
}

func (f *Forward) serve(conn *net.TCPConn) {
	inside, err := f.dial(f.ctx, f.port)
	if err != nil {
		refuse(conn)
		return
	}
	if !f.add(conn, inside) {
		conn.Close()
		inside.Close()
		return
	}
	outbound.Copy(conn, inside)
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.conns, conn)
	delete(f.conns, inside)
}

// add returns false if the port was closed.
func (f *Forward) add(conns ...*net.TCPConn) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.ctx.Err() != nil {
		return false
	}
	for _, conn := range conns {
		f.conns[conn] = true
	}
	return true
}

// refuse resets a connection, as if nobody listened.
func refuse(conn *net.TCPConn) {
	_ = conn.SetLinger(0)
	conn.Close()
}
