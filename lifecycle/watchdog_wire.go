//go:build unix

package lifecycle

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/lifecycle/journal"
)

// A watchdog and its sidecar share one stream socket, on which only the sidecar
// writes:
//
//	{"journal":PATH} and a line end, with a descriptor ─► the journal is this file now
//	{"hold":true} and a line end, with a descriptor ────► hold this open until you end
//	farewell, end of stream ────────────────────────────► end without doing anything
//	end of stream ──────────────────────────────────────► carry out the journal

// watchdogOrder is one line.
type watchdogOrder struct {
	Journal string `json:"journal,omitempty"`
	Hold    bool   `json:"hold,omitempty"`
}

// watchdogSocket makes the socket. No process inherits an end that it was not
// given.
func watchdogSocket() (theirs, ours *os.File, err error) {
	// Other goroutines start processes too. The lock keeps them from inheriting
	// the descriptors before those are close-on-exec.
	syscall.ForkLock.RLock()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err == nil {
		unix.CloseOnExec(fds[0])
		unix.CloseOnExec(fds[1])
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		return nil, nil, os.NewSyscallError("socketpair", err)
	}
	return os.NewFile(uintptr(fds[0]), "watchdog's end"), os.NewFile(uintptr(fds[1]), "watchdog"), nil
}

// sendJournal sends a journal's path and its file.
func sendJournal(socket *os.File, path string, file *os.File) error {
	line, err := json.Marshal(watchdogOrder{Journal: path})
	if err != nil {
		return err
	}
	return sendNow(socket, append(line, '\n'), unix.UnixRights(int(file.Fd())))
}

// sendTimeout bounds the wait for a watchdog that does not read, for example
// because somebody has stopped it.
const sendTimeout = time.Second

// sendNow sends the whole message, or fails.
func sendNow(socket *os.File, message, rights []byte) error {
	fd := int(socket.Fd())
	for deadline := time.Now().Add(sendTimeout); ; {
		n, err := unix.SendmsgN(fd, message, rights, nil, unix.MSG_DONTWAIT)
		switch {
		case errors.Is(err, unix.EINTR):
		case errors.Is(err, unix.EAGAIN) && time.Now().Before(deadline):
			_, _ = unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLOUT}},
				int(time.Until(deadline).Milliseconds())+1)
		case err != nil:
			return os.NewSyscallError("sendmsg", err)
		case n < len(message):
			return fmt.Errorf("send to watchdog: %w", unix.EAGAIN)
		default:
			return nil
		}
	}
}

// heldJournal is the journal that a watchdog will carry out.
type heldJournal struct {
	path string
	file *os.File
	held []*os.File // see sendToHold
}

// listen reads the sidecar's messages until the end of the stream, and reports
// whether the last one was farewell. It treats a socket that cannot be read as
// one that has ended: the journal's lock tells whether the sidecar lives.
func (h *heldJournal) listen(socket int) (dismissed bool) {
	var received []byte
	var files []*os.File
	buffer, control := make([]byte, 8<<10), make([]byte, unix.CmsgSpace(4*4))
	for {
		n, controlled, _, _, err := unix.Recvmsg(socket, buffer, control, 0)
		if errors.Is(err, unix.ENOTSOCK) {
			n, err = unix.Read(socket, buffer)
			controlled = 0
		}
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil || n <= 0:
			return string(received) == farewell
		}
		received = append(received, buffer[:n]...)
		files = append(files, handedOver(control[:controlled])...)
		for {
			line, rest, whole := bytes.Cut(received, []byte("\n"))
			var order watchdogOrder
			if !whole || len(files) == 0 {
				break
			}
			received = rest
			next := files[0]
			files = files[1:]
			switch err := json.Unmarshal(line, &order); {
			case err == nil && order.Hold:
				h.held = append(h.held, next)
			case err == nil && order.Journal != "" && checkHeld(next) == nil:
				h.file.Close()
				h.path, h.file = order.Journal, next
			default:
				next.Close()
			}
		}
	}
}

func handedOver(control []byte) []*os.File {
	messages, _ := unix.ParseSocketControlMessage(control)
	var files []*os.File
	for i := range messages {
		fds, _ := unix.ParseUnixRights(&messages[i])
		for _, fd := range fds {
			unix.CloseOnExec(fd)
			files = append(files, os.NewFile(uintptr(fd), "journal"))
		}
	}
	return files
}

// checkHeld refuses anything but a regular file. The file came from the
// sidecar, and may have no name any more.
func checkHeld(file *os.File) error {
	info, err := file.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = journal.ErrNoJournal
	}
	return err
}
