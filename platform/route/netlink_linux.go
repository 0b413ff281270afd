package route

import (
	"encoding/binary"
	"errors"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

// ErrCut means that the kernel's answer is shorter than it says.
var ErrCut = errors.New("a message is cut off")

// buffers have the kernel's maximum for a message.
var buffers = sync.Pool{New: func() any { return new(make([]byte, 32<<10)) }}

// Converse sends a request of a netlink protocol to the kernel and calls take for
// each part of the answer. The error is the kernel's unix.Errno, ErrCut, or that of
// take, which ends it. It may be called from several goroutines.
func Converse(protocol int, request []byte, take func(body []byte) error) error {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, protocol)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	const limit = 5 // seconds; the kernel answers at once
	if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Sec: limit}); err != nil {
		return err
	}
	if err := unix.Sendto(fd, request, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return err
	}
	pooled := buffers.Get().(*[]byte)
	defer buffers.Put(pooled)
	buffer := *pooled
	for {
		n, _, err := unix.Recvfrom(fd, buffer, 0)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return err
		}
		for message := buffer[:n]; len(message) >= unix.NLMSG_HDRLEN; {
			header := (*unix.NlMsghdr)(unsafe.Pointer(&message[0]))
			if header.Len < unix.NLMSG_HDRLEN || int(header.Len) > len(message) {
				return ErrCut
			}
			body := message[unix.NLMSG_HDRLEN:header.Len]
			message = message[min(len(message), int(Align(header.Len))):]
			switch header.Type {
			case unix.NLMSG_DONE:
				if len(body) >= 4 && binary.NativeEndian.Uint32(body) != 0 {
					return unix.Errno(-int32(binary.NativeEndian.Uint32(body)))
				}
				return nil
			case unix.NLMSG_ERROR:
				if len(body) < 4 {
					return ErrCut
				}
				return unix.Errno(-int32(binary.NativeEndian.Uint32(body)))
			}
			if err := take(body); err != nil || header.Flags&unix.NLM_F_MULTI == 0 {
				return err
			}
		}
	}
}

// Align rounds up to netlink's alignment of messages and attributes.
func Align(length uint32) uint32 { return (length + 3) &^ 3 }
