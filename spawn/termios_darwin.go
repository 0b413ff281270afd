package spawn

import (
	"os"

	"golang.org/x/sys/unix"
)

// setUTF8 makes the line discipline erase whole characters (IUTF8, termios(4)).
func setUTF8(terminal *os.File) error { return changeTermios(terminal, unix.TIOCGETA, unix.TIOCSETA) }
