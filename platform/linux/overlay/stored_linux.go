package overlay

import (
	"errors"
	"io"
	"os"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/linux/overlay/message"
)

// endIdle has the holder end if no sidecar is connected.
func endIdle(dir *os.File) error {
	socket, err := message.Connect(dir)
	if errors.Is(err, unix.ECONNREFUSED) || errors.Is(err, unix.ENOENT) {
		return nil
	}
	if err != nil {
		return err
	}
	defer unix.Close(socket)
	a, fds, err := message.Ask(socket, message.Request{End: true})
	message.CloseAll(fds)
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, unix.ECONNRESET), errors.Is(err, unix.EPIPE):
		return nil // it has died
	case err == nil && a.Used:
		return ErrInUse
	}
	return err
}
