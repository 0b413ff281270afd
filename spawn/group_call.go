package spawn

import (
	"context"
	"errors"
	"io"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/lifecycle"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform"
)

// call is the part of a group that is one session's: its lifecycle.Group.
type call struct {
	shared  *Group
	process *platform.Call // guarded by shared.mu until the session has started
	ask     func(context.Context, Denial) Answer
	// patience is guarded by the group's questions.
	patience patience

	mu         sync.Mutex // guards the fields below
	closing    bool       // its processes are to be killed, also in the background
	background int
}

var _ lifecycle.Group = (*call)(nil)

// Guard does nothing, as the group is guarded.
func (*call) Guard() error { return nil }

// Start is never called: the init starts the command.
func (*call) Start(string, []string, *os.ProcAttr) (lifecycle.Process, error) {
	return nil, errors.New("BUG(sandbox-sidecar): a call is started by its group's init")
}

// MakeDir makes no directory: those of the group are shared.
func (*call) MakeDir() (string, error) {
	return "", errors.New("BUG(sandbox-sidecar): a call has no directory of its own")
}

// Tracking is the group's.
func (c *call) Tracking() lifecycle.Tracking { return c.shared.running.group.Tracking() }

// Close gives nothing back.
func (c *call) Close() error {
	go c.shared.endIfIdle()
	return nil
}

// close has Kill end the background processes, too.
func (c *call) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closing = true
}

// Kill ends the processes of a command that is closed. Of one that has ended by
// itself it counts those that it has left, which stay.
func (c *call) Kill(ctx context.Context) (killed int, err error) {
	if c.process == nil || isClosed(c.shared.init.Released()) {
		return 0, nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	own := lifecycle.Call{Leader: c.process.PID(), Init: c.shared.running.process.PID()}
	if c.closing {
		return own.End(ctx)
	}
	if !c.process.Alone() {
		if c.background, err = own.Left(); err != nil {
			c.shared.running.log.Warn("background processes cannot be counted", "error", err)
		}
	}
	return 0, nil
}

func isClosed(channel <-chan struct{}) bool {
	select {
	case <-channel:
		return true
	default:
		return false
	}
}

// left is how many processes the session has left in the background.
func (c *call) left() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.background
}

// isOpen reports whether a process has the other end of a terminal or pipe open.
// The processes that a session has left tell less: one that has made a session of
// its own is not counted.
func isOpen(file *os.File) bool {
	raw, err := file.SyscallConn()
	if err != nil {
		return false
	}
	open := false
	err = raw.Control(func(fd uintptr) {
		fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		// After another error, as EINTR, nothing says that it is closed.
		_, err := unix.Poll(fds, 0)
		open = err != nil || fds[0].Revents&(unix.POLLHUP|unix.POLLERR|unix.POLLNVAL) == 0
	})
	return err == nil && open
}

// keepReading takes what background processes still print, and drops it: if
// nobody read it, they would wait for ever or fail. It closes the file.
func (g *Group) keepReading(file *os.File) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if isClosed(g.init.Released()) {
		file.Close()
		return
	}
	_ = file.SetReadDeadline(time.Time{})
	g.lingering[file] = true
	go func() {
		_, _ = io.Copy(io.Discard, file)
		g.mu.Lock()
		defer g.mu.Unlock()
		delete(g.lingering, file)
		file.Close()
	}()
}
