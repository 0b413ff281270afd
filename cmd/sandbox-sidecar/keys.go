//go:build unix

package main

import (
	"errors"
	"os"
	"os/signal"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// lookAgain is how long a terminal that is somebody else's is left alone. No signal
// says that a shell has put this process into the foreground.
const lookAgain = 100 * time.Millisecond

// keys copies what is typed at the terminal that is standard input, while that is
// this process's: a job in the background must not read, and a pager at the end of
// the same pipeline reads itself. What is typed after Stop is the caller's.
type keys struct {
	to *os.File
	// fd is the terminal, of which no read blocks: another program may take what
	// poll(2) has seen.
	fd int
	// raw passes keys on as they are. Otherwise the terminal's modes stay.
	raw bool
	// before are the modes that the terminal had before it was raw; nil if it never
	// was.
	before *unix.Termios
	// lines is how lines are read while what is typed is the command's.
	lines lineMode

	wake *os.File // read by the copying
	poke *os.File // its other end
	done chan struct{}
}

// lineMode is what a program changes to read keys itself, or a password: whether
// whole lines are read, and shown.
type lineMode struct{ whole, echo bool }

func lineModeOf(modes *unix.Termios) lineMode {
	return lineMode{modes.Lflag&unix.ICANON != 0, modes.Lflag&unix.ECHO != 0}
}

// copyKeys begins to copy. If raw, the terminal is put into raw mode whenever it is
// this process's.
func copyKeys(to *os.File, raw bool) (*keys, error) {
	wake, poke, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	k := &keys{
		to: to, fd: openAgain(unix.Stdin), raw: raw, lines: lineMode{true, true},
		wake: wake, poke: poke, done: make(chan struct{}),
	}
	modes, err := unix.IoctlGetTermios(unix.Stdin, getTermios)
	// Otherwise another program was faster, as one that asks for a password. Only a
	// terminal that shows what it sends has no echo from the start.
	if err == nil && lineModeOf(modes).whole && os.Getenv("TERM") == "dumb" {
		k.lines = lineModeOf(modes)
	}
	// The shell may take the terminal away just before a read, which fails then
	// instead of stopping this process.
	signal.Ignore(unix.SIGTTIN)
	k.makeRaw()
	go k.copy()
	return k, nil
}

// Resumed says that this process was stopped until now: a shell may have changed the
// terminal's modes.
func (k *keys) Resumed() { _, _ = k.poke.Write([]byte{0}) }

// Stop ends the copying and gives the terminal its modes back.
func (k *keys) Stop() {
	k.poke.Close()
	_ = k.to.SetWriteDeadline(time.Now())
	<-k.done
	if k.fd != unix.Stdin {
		unix.Close(k.fd)
	}
	k.wake.Close()
	if k.before != nil && k.inForeground() {
		_ = unix.IoctlSetTermios(unix.Stdin, setTermios, k.before)
	}
	signal.Reset(unix.SIGTTIN)
}

// openAgain opens a terminal without blocking, which others who have the same file
// open do not see; the same descriptor if that fails. On a Mac it may block.
func openAgain(fd int) int {
	path := "/dev/fd/" + strconv.Itoa(fd)
	again, err := unix.Open(path, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fd
	}
	return again
}

// inForeground reports whether this process may read the terminal. One that is not
// its controlling terminal has no job control.
func (k *keys) inForeground() bool {
	group, err := unix.IoctlGetInt(unix.Stdin, unix.TIOCGPGRP)
	return err != nil || group == unix.Getpgrp()
}

// ours reports whether what is typed now is for the command.
func (k *keys) ours() bool {
	if k.raw || !k.inForeground() {
		return k.inForeground()
	}
	modes, err := unix.IoctlGetTermios(unix.Stdin, getTermios)
	return err != nil || lineModeOf(modes) == k.lines
}

// makeRaw puts the terminal into raw mode, if that is wanted and it is ours.
func (k *keys) makeRaw() {
	if !k.raw || !k.inForeground() {
		return
	}
	modes, err := unix.IoctlGetTermios(unix.Stdin, getTermios)
	if err != nil {
		return
	}
	if k.before == nil {
		k.before = modes
	}
	raw := rawModes(*modes)
	_ = unix.IoctlSetTermios(unix.Stdin, setTermios, &raw)
}

func (k *keys) copy() {
	defer close(k.done)
	buffer := make([]byte, 4096)
	fds := []unix.PollFd{{Fd: int32(k.wake.Fd()), Events: unix.POLLIN}, {Fd: int32(k.fd), Events: unix.POLLIN}}
	wasOurs := k.ours()
	for {
		if !k.ours() {
			wasOurs = false
			fds[0].Revents = 0
			_, _ = unix.Poll(fds[:1], int(lookAgain/time.Millisecond))
			if fds[0].Revents != 0 && k.woken() {
				return
			}
			continue
		}
		if !wasOurs {
			k.makeRaw()
			wasOurs = true
		}
		if _, err := unix.Poll(fds, -1); errors.Is(err, unix.EINTR) {
			continue
		} else if err != nil {
			return
		}
		if fds[0].Revents != 0 && k.woken() {
			return
		}
		if fds[1].Revents == 0 || !k.ours() {
			continue
		}
		n, err := unix.Read(k.fd, buffer)
		switch {
		case errors.Is(err, unix.EINTR) || errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EIO) && !k.ours():
			continue
		case err != nil || n <= 0:
			if !k.raw {
				k.to.Close() // the end of the input; a terminal has none
			}
			return
		}
		if _, err := k.to.Write(buffer[:n]); err != nil {
			return
		}
	}
}

// woken reads why the copying was woken, and reports whether it is to end.
func (k *keys) woken() (end bool) {
	if n, _ := k.wake.Read(make([]byte, 1)); n == 0 {
		return true
	}
	k.makeRaw()
	return false
}

// rawModes are modes in which keys are passed on as they are, as with cfmakeraw(3).
func rawModes(modes unix.Termios) unix.Termios {
	modes.Iflag &^= unix.IGNBRK | unix.BRKINT | unix.PARMRK | unix.ISTRIP | unix.INLCR | unix.IGNCR |
		unix.ICRNL | unix.IXON
	modes.Oflag &^= unix.OPOST
	modes.Lflag &^= unix.ECHO | unix.ECHONL | unix.ICANON | unix.ISIG | unix.IEXTEN
	modes.Cflag = modes.Cflag&^(unix.CSIZE|unix.PARENB) | unix.CS8
	modes.Cc[unix.VMIN], modes.Cc[unix.VTIME] = 1, 0
	return modes
}
