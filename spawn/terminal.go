package spawn

import (
	"fmt"
	"os"
	"syscall"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform"
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

// ownPipe gives a target a pipe for what it prints, and nothing to read. The
// returned file is the end from which the output comes.
func ownPipe(target *platform.Target, _ Request) (reader *os.File, release func(), err error) {
	null, err := os.Open(os.DevNull)
	if err != nil {
		return nil, nil, &Error{Attempt: "open", Path: os.DevNull, Cause: cause(err)}
	}
	reader, writer, err := os.Pipe()
	if err != nil {
		null.Close()
		return nil, nil, &Error{Attempt: "make a pipe", Cause: cause(err)}
	}
	target.Streams = [3]*os.File{null, writer, writer}
	target.Attr = &syscall.SysProcAttr{Setsid: true}
	return reader, func() {
		null.Close()
		writer.Close() // or the end of its output would never be seen
	}, nil
}

// callersStreams gives a target the streams of this process.
func callersStreams(target *platform.Target, _ Request) (master *os.File, release func(), err error) {
	target.Streams = [3]*os.File{os.Stdin, os.Stdout, os.Stderr}
	target.Attr = &syscall.SysProcAttr{}
	return nil, func() {}, nil
}

// openTerminal opens a PTY. Before anything is written to it, it has its size
// and knows that text is UTF-8.
func openTerminal(size Size) (master, terminal *os.File, err error) {
	master, terminal, err = pty.Open()
	if err != nil {
		return nil, nil, err
	}
	if err = setSize(master, size); err == nil {
		err = setUTF8(terminal)
	}
	if err == nil {
		// pty.Open calls Fd, which leaves the master in blocking mode, where
		// deadlines have no effect: a read that gathers output would wait for
		// more output, and nothing would end it at the end of a session.
		err = control(master, func(fd int) error { return unix.SetNonblock(fd, true) })
	}
	if err != nil {
		master.Close()
		terminal.Close()
		return nil, nil, err
	}
	return master, terminal, nil
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

// setSize sets a terminal's size (TIOCSWINSZ, ioctl_tty(2)). pty.Setsize is no
// alternative, because it calls Fd; see control.
func setSize(terminal *os.File, size Size) error {
	cols, rows := size.clamp()
	return control(terminal, func(fd int) error {
		return unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Col: cols, Row: rows})
	})
}

// control calls use with a file's descriptor. (*os.File).Fd would put the file
// into blocking mode, and take it from the poller.
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
