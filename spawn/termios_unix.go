//go:build unix

package spawn

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

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

// setSize sets what TIOCGWINSZ tells (ioctl_tty(2)). pty.Setsize would do it,
// but by way of Fd; see control.
func setSize(terminal *os.File, size Size) error {
	cols, rows := size.clamp()
	return control(terminal, func(fd int) error {
		return unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Col: cols, Row: rows})
	})
}

// control uses a file's descriptor without (*os.File).Fd, which would put it
// into blocking mode and take it from the poller.
func control(file *os.File, use func(fd int) error) error {
	conn, err := file.SyscallConn()
	if err != nil {
		return err
	}
	var inner error
	if conn.Control(func(fd uintptr) { inner = use(int(fd)) }) != nil {
		return os.ErrClosed // the one reason; it is told by an error that nobody outside the standard library can name
	}
	return inner
}
