package spawn

import (
	"fmt"
	"os"
	"syscall"
	"time"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform"
	"github.com/sandbox-sidecar/sandbox-sidecar/spawn/caller"
)

// streams sets a target's standard streams. It returns the master of the
// terminal, nil if the stage opens the terminal or there is no own one, and a
// function that closes the files that only the started process needs.
type streams func(target *platform.Target, request Request) (master *os.File, release func(), err error)

// ownTerminal gives a target a terminal of its own, opened here or by the
// stage.
func ownTerminal(target *platform.Target, request Request) (master *os.File, release func(), err error) {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return nil, nil, &Error{Attempt: "open", Path: os.DevNull, Cause: cause(err)}
	}
	target.Attr = &syscall.SysProcAttr{Setsid: true}
	target.Streams = [3]*os.File{null, null, null}
	if target.Confinement.OwnTerminal {
		cols, rows := request.Size.clamp()
		target.Order.Terminal = &platform.Terminal{Cols: cols, Rows: rows, NoInput: request.NoInput}
		return nil, func() { null.Close() }, nil
	}
	master, terminal, err := openTerminal(request.Size)
	if err != nil {
		null.Close()
		return nil, nil, &Error{
			Attempt: "open a terminal", Cause: err, Hint: "close terminals, or raise kernel.pty.max",
		}
	}
	target.Streams[1], target.Streams[2] = terminal, terminal
	if !request.NoInput {
		target.Streams[0] = terminal
	}
	// Ctty is a descriptor as numbered in the child. Standard output is the
	// terminal in any case.
	target.Attr.Setctty, target.Attr.Ctty = true, 1
	return master, func() {
		null.Close()
		terminal.Close() // or the end of its output would never be seen
	}, nil
}

// callersStreams gives a target the streams of this process.
func callersStreams(target *platform.Target, _ Request) (master *os.File, release func(), err error) {
	target.Streams = [3]*os.File{os.Stdin, os.Stdout, os.Stderr}
	target.Attr = &syscall.SysProcAttr{}
	target.Order.Ignored = caller.Ignored()
	return nil, func() {}, nil
}

// openTerminal opens a PTY. Before anything is written to it, it has its size
// and knows that text is UTF-8.
func openTerminal(size Size) (master, terminal *os.File, err error) {
	opened, terminal, err := pty.Open()
	if err != nil {
		return nil, nil, err
	}
	defer opened.Close()
	cols, rows := size.clamp()
	if err = pty.Setsize(opened, &pty.Winsize{Cols: cols, Rows: rows}); err == nil {
		err = setUTF8(terminal)
	}
	if err == nil {
		master, err = polled(opened)
	}
	if err != nil {
		terminal.Close()
		return nil, nil, err
	}
	return master, terminal, nil
}

// polled returns another file of an open one, in non-blocking mode and in Go's
// poller. The master of pty.Open is neither: the package calls Fd, and for macOS
// it opens the master in blocking mode, which keeps the poller from it for good.
// Without both, deadlines have no effect: a read that gathers output would wait
// for more output, and nothing would end it at the end of a session.
func polled(file *os.File) (*os.File, error) {
	var fd int
	err := control(file, func(opened int) (err error) {
		if err = unix.SetNonblock(opened, true); err == nil {
			fd, err = unix.FcntlInt(uintptr(opened), unix.F_DUPFD_CLOEXEC, 0)
		}
		return err
	})
	if err != nil {
		return nil, os.NewSyscallError("fcntl", err)
	}
	other := os.NewFile(uintptr(fd), file.Name())
	if err := other.SetReadDeadline(time.Time{}); err != nil { // the poller has not accepted it
		other.Close()
		return nil, err
	}
	return other, nil
}

func changeTermios(terminal *os.File, get, set uint) error {
	return control(terminal, func(fd int) error {
		termios, err := unix.IoctlGetTermios(fd, get)
		if err != nil {
			return fmt.Errorf("read terminal attributes: %w", err)
		}
		termios.Iflag |= unix.IUTF8
		if err := unix.IoctlSetTermios(fd, set, termios); err != nil {
			return fmt.Errorf("set terminal attributes: %w", err)
		}
		return nil
	})
}

// setSize sets the size of a session's terminal (TIOCSWINSZ, ioctl_tty(2)).
// pty.Setsize is for terminals that no session has yet: it calls Fd; see
// control.
func setSize(terminal *os.File, size Size) error {
	cols, rows := size.clamp()
	return control(terminal, func(fd int) error {
		return unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Col: cols, Row: rows})
	})
}

// control calls use with a file's descriptor, which is not closed meanwhile.
// (*os.File).Fd holds nothing open, and puts a file that Go has opened into
// blocking mode.
func control(file *os.File, use func(fd int) error) error {
	conn, err := file.SyscallConn()
	if err != nil {
		return err
	}
	var inner error
	if conn.Control(func(fd uintptr) { inner = use(int(fd)) }) != nil {
		return os.ErrClosed // the only reason; the error itself belongs to an internal package
	}
	return inner
}
