package sockets

import (
	"encoding/binary"
	"errors"
	"net/netip"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/linux/notify"
)

// Datagrams knows Unix sockets that replace sockets of UDP, in a session that
// shares the machine's network.
type Datagrams interface {
	// Datagram returns what is known of a socket; false if it is none of them.
	Datagram(fd int) (Datagram, bool)
	// ConnectDatagrams answers a connect(2) of one. The address is invalid if
	// the call dissolves a connection.
	ConnectDatagrams(call *notify.Call, fd int, to netip.AddrPort) unix.Errno
}

// Datagram is what a program believes of its socket of UDP.
type Datagram struct {
	V6 bool
	// Peer is invalid without a connection.
	Peer netip.AddrPort
	// From is where received messages come from.
	From netip.AddrPort
	// Own is its own address.
	Own netip.AddrPort
}

// maxReceived is far above the longest answer of a DNS server.
const maxReceived = 64 << 10

// handleDatagrams returns a handler that answers a call about a socket which
// replaces one of UDP. It lets all others continue, which opens nothing: no
// socket of a session can be another's. So do those of a process that is not
// dumpable, such as an agent of keys or a group's init: only root sees its sockets.
func (m *Mediator) handleDatagrams(answer func(call *notify.Call, fd int, of Datagram) error) func(*notify.Call) {
	return func(call *notify.Call) {
		fd, err := call.Descriptor(int(int32(call.Args[0])))
		if errors.Is(err, unix.EACCES) || errors.Is(err, unix.EPERM) {
			call.Continue()
			return
		}
		if err != nil {
			call.Fail(translate(err))
			return
		}
		defer unix.Close(fd)
		of, is := Datagram{}, false
		if m.Datagrams != nil {
			of, is = m.Datagrams.Datagram(fd)
		}
		if !is {
			call.Continue()
			return
		}
		if err := answer(call, fd, of); err != nil && !errors.Is(err, notify.ErrGone) {
			call.Fail(translate(err))
		}
	}
}

// DatagramHandlers are the handlers of calls by which programs find out the
// addresses of their sockets, and of what these receive.
func (m *Mediator) DatagramHandlers() map[string]notify.Handler {
	handlers := map[string]notify.Handler{}
	for call, answer := range map[string]func(*notify.Call, int, Datagram) error{
		"setsockopt": func(call *notify.Call, _ int, _ Datagram) error { call.Succeed(); return nil },
		"getsockname": func(call *notify.Call, _ int, of Datagram) error {
			return name(call, of, of.Own)
		},
		"getpeername": func(call *notify.Call, _ int, of Datagram) error {
			if !of.Peer.IsValid() {
				return unix.ENOTCONN
			}
			return name(call, of, of.Peer)
		},
		"recvfrom": receiveFrom, "recvmsg": receiveMessage,
	} {
		handlers[call] = notify.Handler{Handle: m.handleDatagrams(answer)}
	}
	return handlers
}

// name answers getsockname(2) and getpeername(2).
func name(call *notify.Call, of Datagram, addr netip.AddrPort) error {
	memory, err := call.Memory()
	if err != nil {
		return err
	}
	defer memory.Close()
	if err := writeName(call, memory, call.Args[1], call.Args[2], of.encode(addr)); err != nil {
		return err
	}
	call.Succeed()
	return nil
}

// encode returns an address as the kernel gives it.
func (d Datagram) encode(addr netip.AddrPort) []byte {
	if d.V6 {
		raw := binary.NativeEndian.AppendUint16(nil, unix.AF_INET6)
		raw = binary.BigEndian.AppendUint16(raw, addr.Port())
		as16 := addr.Addr().As16()
		return append(append(append(raw, 0, 0, 0, 0), as16[:]...), 0, 0, 0, 0)
	}
	raw := binary.NativeEndian.AppendUint16(nil, unix.AF_INET)
	raw = binary.BigEndian.AppendUint16(raw, addr.Port())
	if !addr.Addr().Is4() {
		return append(raw, make([]byte, 12)...)
	}
	as4 := addr.Addr().As4()
	return append(append(raw, as4[:]...), make([]byte, 8)...)
}

// writeName writes as much of an address as there is room for, and its length.
func writeName(call *notify.Call, memory *notify.Memory, at, lengthAt uint64, raw []byte) error {
	var length [4]byte
	if err := call.Read(lengthAt, length[:]); err != nil {
		return err
	}
	room := int32(binary.NativeEndian.Uint32(length[:]))
	if room < 0 {
		return unix.EINVAL
	}
	binary.NativeEndian.PutUint32(length[:], uint32(len(raw)))
	return errors.Join(memory.Write(at, raw[:min(int(room), len(raw))]), memory.Write(lengthAt, length[:]))
}

// receiveFrom answers recvfrom(2).
func receiveFrom(call *notify.Call, fd int, of Datagram) error {
	memory, err := call.Memory()
	if err != nil {
		return err
	}
	defer memory.Close()
	data, n, err := receive1(call, fd, int(min(call.Args[2], maxReceived)), int(int32(call.Args[3])))
	if err != nil {
		return err
	}
	if err := memory.Write(call.Args[1], data); err != nil {
		return err
	}
	if call.Args[5] != 0 {
		if err := writeName(call, memory, call.Args[4], call.Args[5], of.encode(of.From)); err != nil {
			return err
		}
	}
	call.Return(n)
	return nil
}

// receive1 receives one message. n is its whole length if the flags ask for
// that.
func receive1(call *notify.Call, fd, room, flags int) (data []byte, n int, err error) {
	const passed = unix.MSG_PEEK | unix.MSG_TRUNC
	status, err := unix.FcntlInt(uintptr(fd), unix.F_GETFL, 0)
	if err != nil {
		return nil, 0, err
	}
	wait := status&unix.O_NONBLOCK == 0 && flags&unix.MSG_DONTWAIT == 0
	limit := time.Hour
	if timeout, err := unix.GetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO); err == nil && timeout.Nano() > 0 {
		limit = time.Duration(timeout.Nano())
	}
	data = make([]byte, room)
	for {
		n, _, err = unix.Recvfrom(fd, data, flags&passed|unix.MSG_DONTWAIT)
		if !errors.Is(err, unix.EAGAIN) || !wait {
			break
		}
		ready, waited := call.Wait(fd, unix.EPOLLIN, limit)
		if waited != nil {
			return nil, 0, waited
		}
		if !ready {
			return nil, 0, unix.EAGAIN // socket(7), SO_RCVTIMEO
		}
	}
	if err != nil {
		return nil, 0, err
	}
	return data[:min(n, room)], n, nil
}

// The offsets in struct msghdr and struct iovec of a 64-bit program.
const (
	messageName, messageNameLength = 0, 8
	messagePieces, messageCount    = 16, 24
	messageControlLength           = 40
	messageFlags, messageLength    = 48, 56
	pieceLength                    = 16
	maxPieces                      = 1024 // UIO_MAXIOV
)

// receiveMessage answers recvmsg(2). Without an address to write, and for a
// 32-bit program, the kernel does it.
func receiveMessage(call *notify.Call, fd int, of Datagram) error {
	header := make([]byte, messageLength)
	const wide = 1 << 31 // __AUDIT_ARCH_64BIT
	if call.Arch&wide == 0 {
		call.Continue()
		return nil
	}
	if err := call.Read(call.Args[1], header); err != nil {
		return err
	}
	number := func(at int) uint64 { return binary.NativeEndian.Uint64(header[at:]) }
	if number(messageName) == 0 {
		call.Continue()
		return nil
	}
	pieces, room, err := readPieces(call, number(messagePieces), number(messageCount))
	if err != nil {
		return err
	}
	memory, err := call.Memory()
	if err != nil {
		return err
	}
	defer memory.Close()
	data, n, err := receive1(call, fd, room, int(int32(call.Args[2])))
	if err != nil {
		return err
	}
	for _, p := range pieces {
		part := data[:min(int(min(p.length, maxReceived)), len(data))]
		if err := memory.Write(p.at, part); err != nil {
			return err
		}
		data = data[len(part):]
	}
	raw := of.encode(of.From)
	space := binary.NativeEndian.Uint32(header[messageNameLength:])
	if err := memory.Write(number(messageName), raw[:min(int(min(space, maxReceived)), len(raw))]); err != nil {
		return err
	}
	binary.NativeEndian.PutUint32(header[messageNameLength:], uint32(len(raw)))
	flags := uint32(0)
	if n > room {
		flags = unix.MSG_TRUNC
	}
	err = errors.Join(memory.Write(call.Args[1]+messageNameLength, header[messageNameLength:messageNameLength+4]),
		memory.Write(call.Args[1]+messageControlLength, make([]byte, 8)),
		memory.Write(call.Args[1]+messageFlags, binary.NativeEndian.AppendUint32(nil, flags)))
	if err != nil {
		return err
	}
	call.Return(n)
	return nil
}

type piece struct{ at, length uint64 }

// readPieces reads a list of struct iovec. room is the sum of the lengths, up to
// the longest message.
func readPieces(call *notify.Call, at, count uint64) (pieces []piece, room int, err error) {
	if count > maxPieces {
		return nil, 0, unix.EMSGSIZE
	}
	raw := make([]byte, count*pieceLength)
	if err := call.Read(at, raw); err != nil {
		return nil, 0, err
	}
	for one := range slices.Chunk(raw, pieceLength) {
		p := piece{binary.NativeEndian.Uint64(one), binary.NativeEndian.Uint64(one[8:])}
		pieces = append(pieces, p)
		room = min(room+int(min(p.length, maxReceived)), maxReceived)
	}
	return pieces, room, nil
}
