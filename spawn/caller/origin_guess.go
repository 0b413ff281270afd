//go:build unix

package caller

import (
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// guess passes signals on to a channel, and takes those that a key can send for
// the terminal's if this process group is in its foreground.
func guess(caught <-chan os.Signal, to chan<- Signal) (leave func()) {
	left := make(chan struct{})
	go func() {
		for {
			select {
			case got := <-caught:
				arrived := Signal{Number: got.(unix.Signal)}
				switch arrived.Number {
				case unix.SIGINT, unix.SIGQUIT, unix.SIGTSTP, unix.SIGWINCH:
					arrived.FromTerminal = inForeground()
				}
				select {
				case to <- arrived:
				default:
				}
			case <-left:
				return
			}
		}
	}()
	return sync.OnceFunc(func() { close(left) })
}

// inForeground reports whether this process group is in the foreground of its
// terminal.
func inForeground() bool {
	terminal, err := unix.Open("/dev/tty", unix.O_RDONLY|unix.O_NOCTTY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return false
	}
	defer unix.Close(terminal)
	group, err := unix.IoctlGetInt(terminal, unix.TIOCGPGRP)
	return err == nil && group == unix.Getpgrp()
}
