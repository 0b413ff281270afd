package message

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/handshake"
)

// Send sends a message with descriptors over a socket that keeps messages apart.
// It does not wait for the receiver.
func Send(socket int, message any, fds ...int) error {
	data, err := json.Marshal(message)
	if err != nil {
		return err
	}
	var rights []byte
	if len(fds) > 0 {
		rights = unix.UnixRights(fds...)
	}
	for {
		err := unix.Sendmsg(socket, data, rights, nil, unix.MSG_NOSIGNAL|unix.MSG_DONTWAIT)
		if !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// Receive receives a message and the descriptors that come with it, which the
// caller closes. The error is io.EOF if the other side has closed.
func Receive(socket int, into any) (fds []int, err error) {
	data := make([]byte, maxMessage)
	control := make([]byte, unix.CmsgSpace(MaxCaches*4))
	var n, controlled, flags int
	for {
		n, controlled, flags, _, err = unix.Recvmsg(socket, data, control, unix.MSG_CMSG_CLOEXEC)
		if !errors.Is(err, unix.EINTR) {
			break
		}
	}
	if err != nil {
		return nil, err
	}
	messages, err := unix.ParseSocketControlMessage(control[:controlled])
	for i := range messages {
		if rights, rightsErr := unix.ParseUnixRights(&messages[i]); rightsErr == nil {
			fds = append(fds, rights...)
		}
	}
	switch {
	case err != nil:
	case flags&(unix.MSG_TRUNC|unix.MSG_CTRUNC) != 0:
		err = errors.New("the message is too long")
	case n == 0:
		err = io.EOF
	default:
		err = json.Unmarshal(data[:n], into)
	}
	if err != nil {
		CloseAll(fds)
		return nil, err
	}
	return fds, nil
}

// CloseAll closes descriptors.
func CloseAll(fds []int) {
	for _, fd := range fds {
		unix.Close(fd)
	}
}

// answerTimeout bounds the wait for the holder, which needs less than a
// millisecond for each cache.
const answerTimeout = 5 * time.Second

// Connect connects to the holder's socket. The path goes through a descriptor,
// because the address of a socket has room for only 107 bytes.
func Connect(dir *os.File) (socket int, err error) {
	socket, err = unix.Socket(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	if err = Bound(socket); err == nil {
		err = unix.Connect(socket, Address(dir))
	}
	if err != nil {
		unix.Close(socket)
		return -1, err
	}
	return socket, nil
}

// Bound bounds the waits of a socket.
func Bound(socket int) error {
	timeout := unix.NsecToTimeval(answerTimeout.Nanoseconds())
	return errors.Join(unix.SetsockoptTimeval(socket, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &timeout),
		unix.SetsockoptTimeval(socket, unix.SOL_SOCKET, unix.SO_SNDTIMEO, &timeout))
}

// Address is that of the holder's socket; see Connect.
func Address(dir *os.File) unix.Sockaddr {
	return &unix.SockaddrUnix{Name: FDPath(int(dir.Fd())) + "/" + SocketName}
}

// FDPath is a path that leads to what a descriptor of this process is for.
func FDPath(fd int) string { return "/proc/self/fd/" + strconv.Itoa(fd) }

// Ask sends a request and receives the answer.
func Ask(socket int, r Request) (Answer, []int, error) {
	if err := Send(socket, r); err != nil {
		return Answer{}, nil, err
	}
	var a Answer
	fds, err := Receive(socket, &a)
	if err == nil && a.Error != "" {
		CloseAll(fds)
		return Answer{}, nil, errors.New(a.Error)
	}
	return a, fds, err
}

// Clone returns copies of the holder's mounts of caches that were prepared, in
// their order. dir is the real path of the directory of the overlays. The stage
// mounts them. The caller closes them.
func Clone(dir string, paths []string) ([]int, error) {
	if len(paths) == 0 {
		return nil, nil
	}
	file, err := OpenOwn(dir)
	if err != nil {
		return nil, fmt.Errorf("connect to the holder of caches: %w", err)
	}
	defer file.Close()
	socket, err := Connect(file)
	if err != nil {
		return nil, fmt.Errorf("connect to the holder of caches: %w", err)
	}
	defer unix.Close(socket)
	_, mounts, err := Ask(socket, Request{Clone: handshake.RawStrings(paths)})
	if err == nil && len(mounts) != len(paths) {
		CloseAll(mounts)
		err = fmt.Errorf("mounts that arrived: %d of %d", len(mounts), len(paths))
	}
	if err != nil {
		return nil, fmt.Errorf("get overlays: %w", err)
	}
	return mounts, nil
}
