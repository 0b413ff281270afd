package caller

import "golang.org/x/sys/unix"

const (
	getTermios = unix.TCGETS
	setTermios = unix.TCSETS
)

// isExclusive reports whether a terminal cannot be opened again (TIOCEXCL).
func isExclusive(fd int) bool {
	is, err := unix.IoctlGetInt(fd, unix.TIOCGEXCL)
	return err == nil && is != 0
}
