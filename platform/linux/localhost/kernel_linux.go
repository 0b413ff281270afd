package localhost

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

// listener is a socket that listens by TCP.
type listener struct {
	at     netip.AddrPort // unspecified for all addresses
	only6  bool           // an IPv6 socket that takes no IPv4
	cookie uint64
}

// From linux/inet_diag.h, linux/sock_diag.h and net/tcp_states.h.
const (
	statesListen = 1 << 10
	diagOnly6    = 11 // INET_DIAG_SKV6ONLY
	// diagFixed is sizeof(struct inet_diag_msg).
	diagFixed = 72
)

// diagRequest is struct nlmsghdr followed by struct inet_diag_req_v2.
type diagRequest struct {
	header              unix.NlMsghdr
	family, proto       uint8
	extensions, padding uint8
	states              uint32
	port, remote        [2]byte
	addresses           [2][16]byte
	device              uint32
	cookie              [2]uint32
}

// listeners lists the sockets of our network namespace that listen by TCP at a
// port; 0 for all ports.
func listeners(port uint16) ([]listener, error) {
	var all []listener
	for _, family := range []uint8{unix.AF_INET, unix.AF_INET6} {
		request := diagRequest{family: family, proto: unix.IPPROTO_TCP, states: statesListen}
		binary.BigEndian.PutUint16(request.port[:], port)
		request.header = unix.NlMsghdr{
			Len: uint32(unsafe.Sizeof(request)), Type: unix.SOCK_DIAG_BY_FAMILY,
			Flags: unix.NLM_F_REQUEST | unix.NLM_F_DUMP, Seq: 1,
		}
		bytes := unsafe.Slice((*byte)(unsafe.Pointer(&request)), unsafe.Sizeof(request))
		err := converse(unix.NETLINK_SOCK_DIAG, bytes, func(body []byte) error {
			one, err := readListener(body)
			if err == nil && (port == 0 || one.at.Port() == port) {
				all = append(all, one)
			}
			return err
		})
		if family == unix.AF_INET6 && errors.Is(err, unix.ENOENT) {
			continue // a kernel without IPv6
		}
		if err != nil {
			return nil, fmt.Errorf("list sockets that listen: %w", err)
		}
	}
	return all, nil
}

var errCut = errors.New("a message is cut off")

// readListener parses a struct inet_diag_msg with its attributes.
func readListener(body []byte) (listener, error) {
	if len(body) < diagFixed {
		return listener{}, errCut
	}
	addr := netip.AddrFrom16([16]byte(body[8:24])).Unmap()
	if body[0] == unix.AF_INET {
		addr = netip.AddrFrom4([4]byte(body[8:12]))
	}
	low, high := binary.NativeEndian.Uint32(body[44:]), binary.NativeEndian.Uint32(body[48:])
	one := listener{
		at: netip.AddrPortFrom(addr, binary.BigEndian.Uint16(body[4:])), cookie: uint64(low) | uint64(high)<<32,
	}
	for rest := body[diagFixed:]; len(rest) >= unix.SizeofRtAttr; {
		length := binary.NativeEndian.Uint16(rest)
		if length < unix.SizeofRtAttr || int(length) > len(rest) {
			return listener{}, errCut
		}
		if binary.NativeEndian.Uint16(rest[2:]) == diagOnly6 && length > unix.SizeofRtAttr {
			one.only6 = rest[unix.SizeofRtAttr] != 0
		}
		rest = rest[min(len(rest), int(align(uint32(length)))):]
	}
	return one, nil
}

// buffers have the kernel's maximum for a message.
var buffers = sync.Pool{New: func() any { return new(make([]byte, 32<<10)) }}

// converse sends a request to the kernel and calls take for each part of the
// answer.
func converse(protocol int, request []byte, take func(body []byte) error) error {
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
				return errCut
			}
			body := message[unix.NLMSG_HDRLEN:header.Len]
			message = message[min(len(message), int(align(header.Len))):]
			switch header.Type {
			case unix.NLMSG_DONE:
				if len(body) >= 4 && binary.NativeEndian.Uint32(body) != 0 {
					return unix.Errno(-int32(binary.NativeEndian.Uint32(body)))
				}
				return nil
			case unix.NLMSG_ERROR:
				if len(body) < 4 {
					return errCut
				}
				return unix.Errno(-int32(binary.NativeEndian.Uint32(body)))
			}
			if err := take(body); err != nil || header.Flags&unix.NLM_F_MULTI == 0 {
				return err
			}
		}
	}
}

// align rounds up to netlink's alignment of messages and attributes.
func align(length uint32) uint32 { return (length + 3) &^ 3 }

// errUnknown means that the kernel did not say whose an address is.
var errUnknown = errors.New("the kernel does not say whose an address is")

// isOwn reports whether an address is one of this machine's. The kernel is asked
// about its route, so that every address counts at which it would deliver to
// itself.
func isOwn(addr netip.Addr) (bool, error) {
	if addr.IsLoopback() || addr.IsUnspecified() {
		return true, nil
	}
	family, raw := uint8(unix.AF_INET), addr.AsSlice()
	if addr.Is6() {
		family = unix.AF_INET6
	}
	length := uint32(unix.NLMSG_HDRLEN + unix.SizeofRtMsg + unix.SizeofRtAttr + len(raw))
	request := make([]byte, 0, length)
	request = binary.NativeEndian.AppendUint32(request, length)
	request = binary.NativeEndian.AppendUint16(request, unix.RTM_GETROUTE)
	request = binary.NativeEndian.AppendUint16(request, unix.NLM_F_REQUEST)
	request = append(request, 1, 0, 0, 0, 0, 0, 0, 0) // its number, and from no port
	request = append(request, family, uint8(len(raw)*8))
	request = append(request, make([]byte, unix.SizeofRtMsg-2)...)
	request = binary.NativeEndian.AppendUint16(request, uint16(unix.SizeofRtAttr+len(raw)))
	request = binary.NativeEndian.AppendUint16(request, unix.RTA_DST)
	request = append(request, raw...)
	own, known := false, false
	err := converse(unix.NETLINK_ROUTE, request, func(body []byte) error {
		const kindAt = 7 // rtm_type
		if len(body) < unix.SizeofRtMsg {
			return errCut
		}
		kind := body[kindAt]
		own, known = kind == unix.RTN_LOCAL || kind == unix.RTN_ANYCAST, true
		return nil
	})
	var errno unix.Errno
	switch {
	case known:
		return own, nil
	case errors.As(err, &errno) && (errno == unix.ENETUNREACH || errno == unix.EHOSTUNREACH || errno == unix.EACCES ||
		errno == unix.EINVAL || errno == unix.EOPNOTSUPP || errno == unix.EAFNOSUPPORT):
		return false, nil // there is no way to it, as connect(2) will say
	case err != nil:
		return false, err
	}
	return false, errUnknown
}
