package sockets

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/linux/canary"
)

// diag lists the Unix sockets of one network namespace (sock_diag(7)).
// Unprivileged processes may do so. The namespace is that of the thread which
// created the netlink socket.
type diag struct {
	mu    sync.Mutex // one request at a time
	file  *os.File
	asked uint32 // number of requests so far
}

// listed is one Unix socket.
type listed struct {
	cookie uint64
	// inode and device identify its file; 0 if it has none. The kernel
	// truncates the inode to 32 bits.
	inode, device uint32
	// name is the address that it was bound to. That of an abstract socket
	// begins with a NUL.
	name string
}

// From linux/unix_diag.h, linux/sock_diag.h and net/tcp_states.h.
const (
	diagName, diagVFS = 0, 1

	showName, showVFS = 1 << 0, 1 << 1

	inAnyState = 1<<32 - 1
	listening  = 1 << 10 // TCP_LISTEN

)

// diagRequest is struct nlmsghdr followed by struct unix_diag_req.
type diagRequest struct {
	header          unix.NlMsghdr
	family, proto   uint8
	_               uint16
	states, inode   uint32
	show            uint32
	cookie, cookie2 uint32
}

// openDiag opens one for this process.
func openDiag() (*diag, error) {
	fd, err := canary.OpenDiag()
	if err != nil {
		return nil, err
	}
	return &diag{file: os.NewFile(uintptr(fd), "sock_diag")}, nil
}

func (d *diag) close() {
	if d != nil {
		d.file.Close()
	}
}

// list returns the sockets in the given states (bits 1<<TCP_…).
func (d *diag) list(states uint32) ([]listed, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	raw, err := d.file.SyscallConn()
	if err != nil {
		return nil, err
	}
	var found []listed
	var failed error
	err = raw.Control(func(fd uintptr) {
		// A list is incomplete if the table changed meanwhile; the kernel
		// reports that.
		for range maxTries {
			d.asked++
			if found, failed = ask(int(fd), d.asked, states); !errors.Is(failed, errChanged) {
				return
			}
		}
	})
	if err == nil {
		err = failed
	}
	if err != nil {
		return nil, fmt.Errorf("list unix sockets: %w", err)
	}
	return found, nil
}

// maxTries bounds how often a list that changes meanwhile is requested again.
const maxTries = 16

var errChanged = errors.New("the table has changed meanwhile")

func ask(fd int, number, states uint32) ([]listed, error) {
	request := diagRequest{family: unix.AF_UNIX, states: states, show: showName | showVFS}
	request.header = unix.NlMsghdr{
		Len: uint32(unsafe.Sizeof(request)), Type: unix.SOCK_DIAG_BY_FAMILY,
		Flags: unix.NLM_F_REQUEST | unix.NLM_F_DUMP, Seq: number,
	}
	bytes := unsafe.Slice((*byte)(unsafe.Pointer(&request)), unsafe.Sizeof(request))
	if err := unix.Sendto(fd, bytes, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return nil, err
	}
	var found []listed
	changed := false
	buffer := make([]byte, 32<<10) // the kernel's maximum per message
	for {
		n, _, err := unix.Recvfrom(fd, buffer, 0)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return nil, err
		}
		for message := buffer[:n]; len(message) >= unix.NLMSG_HDRLEN; {
			header := (*unix.NlMsghdr)(unsafe.Pointer(&message[0]))
			if header.Len < unix.NLMSG_HDRLEN || int(header.Len) > len(message) {
				return nil, errors.New("a message is cut off")
			}
			body := message[unix.NLMSG_HDRLEN:header.Len]
			message = message[min(len(message), int(align(header.Len))):]
			if header.Seq != number {
				continue // left over from an earlier request
			}
			changed = changed || header.Flags&unix.NLM_F_DUMP_INTR != 0
			switch header.Type {
			case unix.NLMSG_DONE:
				if changed {
					return nil, errChanged
				}
				return found, nil
			case unix.NLMSG_ERROR:
				if len(body) < 4 {
					return nil, errors.New("a message is cut off")
				}
				return nil, unix.Errno(-int32(binary.NativeEndian.Uint32(body)))
			default:
				if socket, ok := read(body); ok {
					found = append(found, socket)
				}
			}
		}
	}
}

// read parses a struct unix_diag_msg: four bytes, the socket's own inode, its
// cookie, and attributes.
func read(body []byte) (listed, bool) {
	const fixed = 16
	if len(body) < fixed {
		return listed{}, false
	}
	low, high := binary.NativeEndian.Uint32(body[8:]), binary.NativeEndian.Uint32(body[12:])
	socket := listed{cookie: uint64(low) | uint64(high)<<32}
	for rest := body[fixed:]; len(rest) >= unix.SizeofRtAttr; {
		length := binary.NativeEndian.Uint16(rest)
		if length < unix.SizeofRtAttr || int(length) > len(rest) {
			return listed{}, false
		}
		value := rest[unix.SizeofRtAttr:length]
		switch kind := binary.NativeEndian.Uint16(rest[2:]); {
		case kind == diagName:
			socket.name = string(value)
			if !strings.HasPrefix(socket.name, "\x00") {
				socket.name, _, _ = strings.Cut(socket.name, "\x00")
			}
		case kind == diagVFS && len(value) >= 8:
			socket.inode, socket.device = binary.NativeEndian.Uint32(value), binary.NativeEndian.Uint32(value[4:])
		}
		rest = rest[min(len(rest), int(align(uint32(length)))):]
	}
	return socket, true
}

// align rounds up to netlink's alignment of messages and attributes.
func align(length uint32) uint32 { return (length + 3) &^ 3 }
