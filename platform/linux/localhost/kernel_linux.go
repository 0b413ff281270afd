package localhost

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/route"
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
		err := route.Converse(unix.NETLINK_SOCK_DIAG, bytes, func(body []byte) error {
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

// readListener parses a struct inet_diag_msg with its attributes.
func readListener(body []byte) (listener, error) {
	if len(body) < diagFixed {
		return listener{}, route.ErrCut
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
			return listener{}, route.ErrCut
		}
		if binary.NativeEndian.Uint16(rest[2:]) == diagOnly6 && length > unix.SizeofRtAttr {
			one.only6 = rest[unix.SizeofRtAttr] != 0
		}
		rest = rest[min(len(rest), int(route.Align(uint32(length)))):]
	}
	return one, nil
}
