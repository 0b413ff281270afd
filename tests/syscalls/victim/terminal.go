//go:build linux

package main

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// typeIn puts text into the input of the terminal, as if the user had typed it.
func typeIn(text string) error {
	for _, key := range []byte(text) {
		if _, _, errno := unix.RawSyscall(unix.SYS_IOCTL, 0, unix.TIOCSTI, uintptr(unsafe.Pointer(&key))); errno != 0 {
			return errno
		}
	}
	return nil
}
