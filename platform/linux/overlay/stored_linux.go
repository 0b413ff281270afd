package overlay

import (
	"errors"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// endIdle has the holder end if no sidecar is connected.
func endIdle(dir *os.File) error {
	socket, err := connect(dir)
	if errors.Is(err, unix.ECONNREFUSED) || errors.Is(err, unix.ENOENT) {
		return nil
	}
	if err != nil {
		return err
	}
	defer unix.Close(socket)
	a, fds, err := ask(socket, request{End: true})
	closeAll(fds)
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, unix.ECONNRESET), errors.Is(err, unix.EPIPE):
		return nil // it has died
	case err == nil && a.Used:
		return ErrInUse
	}
	return err
}
