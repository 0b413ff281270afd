//go:build unix

package main

import (
	"errors"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// piped gives the command of a link pipes of this process's own in the place of its
// caller's. What the command leaves in the background has the output of the command
// open for as long as it runs, and a caller that reads to the end would wait for
// that. See docs/design/groups.md.
type piped struct {
	files  [3]*os.File // for the command
	copies []*pipeCopy
}

// pipeCopy is an output of the command, which goes to one of the caller's.
type pipeCopy struct {
	inside, from, to *os.File

	read  chan struct{} // closed once run has ended, and the field below is set
	ended bool          // nobody inside has the pipe open, or nobody reads at the other end

	mu     sync.Mutex // guards the field below
	handed bool       // another process is to get from: nothing closes it meanwhile
}

// newPiped makes pipes in the place of an output that is a pipe or such a socket as
// some programs use for one. Everything else is passed as it is, and so is the
// input: what the command does not read is not its own. Call begin and finish, or
// drop.
func newPiped() (*piped, error) {
	p := &piped{files: [3]*os.File{os.Stdin, os.Stdout, os.Stderr}}
	for i, file := range p.files {
		switch {
		case i == 0 || !isPipe(file):
			continue
		case i == 2 && len(p.copies) > 0 && isSameFile(file, os.Stdout):
			p.files[i] = p.copies[0].inside // in one order
			continue
		}
		r, w, err := os.Pipe()
		if err != nil {
			p.drop()
			return nil, err
		}
		w.Fd() // into blocking mode, as programs expect
		p.files[i] = w
		p.copies = append(p.copies, &pipeCopy{inside: w, from: r, to: file, read: make(chan struct{})})
	}
	return p, nil
}

// isPipe reports whether a file is a pipe, or a Unix socket for a stream.
func isPipe(file *os.File) bool {
	info, err := file.Stat()
	if err != nil || info.Mode()&(os.ModeNamedPipe|os.ModeSocket) == 0 {
		return false
	}
	if info.Mode()&os.ModeNamedPipe != 0 {
		return true
	}
	is := false
	raw, err := file.SyscallConn()
	if err == nil {
		err = raw.Control(func(fd uintptr) {
			address, err := unix.Getsockname(int(fd))
			_, local := address.(*unix.SockaddrUnix)
			kind, kindErr := unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_TYPE)
			is = err == nil && kindErr == nil && local && kind == unix.SOCK_STREAM
		})
	}
	return err == nil && is
}

func isSameFile(a, b *os.File) bool {
	infoA, errA := a.Stat()
	infoB, errB := b.Stat()
	return errA == nil && errB == nil && os.SameFile(infoA, infoB)
}

// drop gives the pipes up: the command was not started.
func (p *piped) drop() {
	for _, c := range p.copies {
		c.inside.Close()
		c.from.Close()
	}
}

// begin copies from now on. The command has its ends of the pipes. SIGPIPE must not
// end this process.
func (p *piped) begin() {
	for _, c := range p.copies {
		c.inside.Close()
		go c.run()
		go c.endWithReader()
	}
}

// finish copies the rest once the command has ended: all that it has printed, and
// what its processes in the background print within a moment. It returns the pipes
// that these still have open, which the caller closes.
func (p *piped) finish() (open []*os.File) {
	for _, c := range p.copies {
		_ = c.from.SetReadDeadline(time.Now().Add(drainTime))
	}
	for _, c := range p.copies {
		<-c.read
		if !c.ended {
			c.rest()
		}
		if c.ended || !c.handOver() {
			c.from.Close()
			continue
		}
		open = append(open, c.from)
	}
	return open
}

// run copies until the pipe ends, nobody reads at the other end, or a deadline is
// over.
func (c *pipeCopy) run() {
	defer close(c.read)
	buffer := make([]byte, 32<<10)
	for {
		n, err := c.from.Read(buffer)
		if !c.write(buffer[:n]) {
			return
		}
		if err != nil {
			c.ended = !errors.Is(err, os.ErrDeadlineExceeded)
			return
		}
	}
}

// mostInPipe is as large as a user's pipes can be, as Linux has it by default.
const mostInPipe = 1 << 20

// rest copies what is in the pipe now. The command has ended, so all of its own is
// there. What its processes in the background print meanwhile may never end.
func (c *pipeCopy) rest() {
	_ = c.from.SetReadDeadline(time.Time{})
	buffer := make([]byte, 32<<10)
	for left := mostInPipe; left > 0; {
		n, err := readNow(c.from, buffer)
		switch {
		case errors.Is(err, unix.EAGAIN):
			return
		case err != nil || n == 0: // nobody prints any more, or nobody reads; see endWithReader
			c.ended = true
			return
		case !c.write(buffer[:n]):
			return
		}
		left -= n
	}
}

// readNow reads from a pipe without waiting.
func readNow(file *os.File, buffer []byte) (n int, err error) {
	raw, err := file.SyscallConn()
	if err != nil {
		return 0, err
	}
	failed := raw.Read(func(fd uintptr) bool {
		for {
			if n, err = unix.Read(int(fd), buffer); !errors.Is(err, unix.EINTR) {
				return true
			}
		}
	})
	return max(n, 0), errors.Join(err, failed)
}

// write writes to the caller's file. If nobody reads there any more, it closes the
// pipe, so that the command finds that out as it would by itself.
func (c *pipeCopy) write(data []byte) bool {
	for len(data) > 0 {
		n, err := c.to.Write(data)
		data = data[n:]
		switch {
		case err == nil:
		case errors.Is(err, unix.EAGAIN): // another process has put the file into this mode
			awaitEvent(c.to, unix.POLLOUT)
		default:
			c.ended = true
			c.from.Close()
			return false
		}
	}
	return true
}

// endWithReader closes the pipe once nobody reads at the other end any more, also if
// nothing is written: some programs look.
func (c *pipeCopy) endWithReader() {
	// Linux always reports that a pipe has no reader, macOS only if an event is
	// requested.
	if awaitEvent(c.to, unix.POLLHUP) {
		c.mu.Lock()
		defer c.mu.Unlock()
		if !c.handed {
			c.from.Close()
		}
	}
}

// handOver keeps endWithReader from closing the pipe. It returns false if it has
// closed it.
func (c *pipeCopy) handOver() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, err := c.from.Stat()
	c.handed = err == nil
	return c.handed
}

// awaitEvent waits for an event of a file, or for its failure. It returns false if
// it cannot.
func awaitEvent(file *os.File, event int16) bool {
	raw, err := file.SyscallConn()
	if err != nil {
		return false
	}
	came := false
	err = raw.Control(func(fd uintptr) {
		for {
			fds := []unix.PollFd{{Fd: int32(fd), Events: event}}
			_, err := unix.Poll(fds, -1)
			if came = err == nil && fds[0].Revents != 0; came || err != nil && !errors.Is(err, unix.EINTR) {
				return
			}
		}
	})
	return err == nil && came
}
