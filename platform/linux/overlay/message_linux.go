package overlay

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

// send sends a message with descriptors over a socket that keeps messages apart.
// It does not wait for the receiver.
func send(socket int, message any, fds ...int) error {
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

// receive receives a message and the descriptors that come with it, which the
// caller closes. The error is io.EOF if the other side has closed.
func receive(socket int, into any) (fds []int, err error) {
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
		closeAll(fds)
		return nil, err
	}
	return fds, nil
}

func closeAll(fds []int) {
	for _, fd := range fds {
		unix.Close(fd)
	}
}

// answerTimeout bounds the wait for the holder, which needs less than a
// millisecond for each cache.
const answerTimeout = 5 * time.Second

// connect connects to the holder's socket. The path goes through a descriptor,
// because the address of a socket has room for only 107 bytes.
func connect(dir *os.File) (socket int, err error) {
	socket, err = unix.Socket(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	if err = bound(socket); err == nil {
		err = unix.Connect(socket, address(dir))
	}
	if err != nil {
		unix.Close(socket)
		return -1, err
	}
	return socket, nil
}

// bound bounds the waits of a socket.
func bound(socket int) error {
	timeout := unix.NsecToTimeval(answerTimeout.Nanoseconds())
	return errors.Join(unix.SetsockoptTimeval(socket, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &timeout),
		unix.SetsockoptTimeval(socket, unix.SOL_SOCKET, unix.SO_SNDTIMEO, &timeout))
}

func address(dir *os.File) unix.Sockaddr {
	return &unix.SockaddrUnix{Name: fdPath(int(dir.Fd())) + "/" + socketName}
}

func fdPath(fd int) string { return "/proc/self/fd/" + strconv.Itoa(fd) }

// ask sends a request and receives the answer.
func ask(socket int, r request) (answer, []int, error) {
	if err := send(socket, r); err != nil {
		return answer{}, nil, err
	}
	var a answer
	fds, err := receive(socket, &a)
	if err == nil && a.Error != "" {
		closeAll(fds)
		return answer{}, nil, errors.New(a.Error)
	}
	return a, fds, err
}

// Clone returns copies of the holder's mounts of caches that were prepared, in
// their order. The stage mounts them. The caller closes them.
func Clone(dir string, paths []string) ([]int, error) {
	if len(paths) == 0 {
		return nil, nil
	}
	file, err := openMade(dir)
	if err != nil {
		return nil, fmt.Errorf("connect to the holder of caches: %w", err)
	}
	defer file.Close()
	socket, err := connect(file)
	if err != nil {
		return nil, fmt.Errorf("connect to the holder of caches: %w", err)
	}
	defer unix.Close(socket)
	_, mounts, err := ask(socket, request{Clone: handshake.RawStrings(paths)})
	if err == nil && len(mounts) != len(paths) {
		closeAll(mounts)
		err = fmt.Errorf("mounts that arrived: %d of %d", len(mounts), len(paths))
	}
	if err != nil {
		return nil, fmt.Errorf("get overlays: %w", err)
	}
	return mounts, nil
}
