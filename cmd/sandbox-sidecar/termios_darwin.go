package main

import "golang.org/x/sys/unix"

const (
	getTermios = unix.TIOCGETA
	setTermios = unix.TIOCSETA
	noKey      = 0xff // _POSIX_VDISABLE
)

// flushInput drops typed input that is not read yet.
func flushInput(fd int) error {
	const reading = 1 // FREAD of sys/fcntl.h
	return unix.IoctlSetPointerInt(fd, unix.TIOCFLUSH, reading)
}
