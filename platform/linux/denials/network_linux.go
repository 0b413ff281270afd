package denials

import (
	"encoding/binary"
	"net/netip"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/linux/notify"
)

// longestAddress is sizeof(struct sockaddr_storage), above which the kernel
// takes no address.
const longestAddress = 128

// Connect looks at connect(2) in a network that consists of a loopback
// interface: whatever is elsewhere is out of reach (ENETUNREACH).
func (o *Observer) Connect(call *notify.Call) { o.network(call, platform.RefusedConnect, 1, 2) }

// SendTo looks at sendto(2) with an address, likewise.
func (o *Observer) SendTo(call *notify.Call) { o.network(call, platform.RefusedConnect, 4, 5) }

// Bind looks at bind(2): in such a network no other address is this machine's
// (EADDRNOTAVAIL).
func (o *Observer) Bind(call *notify.Call) { o.network(call, platform.RefusedBind, 1, 2) }

func (o *Observer) network(call *notify.Call, access platform.Refused, at, size int) {
	if to, ok := address(call, at, size); ok && !to.Addr().IsLoopback() && !to.Addr().IsUnspecified() {
		o.report(call, refusal{access: access, target: to.String()})
	}
}

// BindUnix looks at bind(2) of a Unix socket with a path, which makes a file.
func (o *Observer) BindUnix(call *notify.Call) {
	raw, ok := rawAddress(call, 1, 2)
	const pathAt = 2
	if !ok || family(raw) != unix.AF_UNIX || len(raw) <= pathAt || raw[pathAt] == 0 {
		return
	}
	name := unix.ByteSliceToString(raw[pathAt:])
	root, err := rootOf(call.TID)
	if err != nil {
		return
	}
	defer unix.Close(root)
	loc, err := locate(call, root, unix.AT_FDCWD, name, false)
	if err != nil {
		return
	}
	defer loc.close()
	w := newRequest(opCreate, 0)
	if access, refused := o.decide(w, loc); refused && o.permitted(call, root, w, loc, access) {
		o.report(call, refusal{access: access, target: display(loc.path)})
	}
}

// families are those of sockets that programs ask for when they want the
// network (linux/socket.h).
var families = map[int]string{
	unix.AF_INET: "inet", unix.AF_INET6: "inet6", unix.AF_NETLINK: "netlink", unix.AF_PACKET: "packet", unix.AF_VSOCK: "vsock",
	unix.AF_BLUETOOTH: "bluetooth", unix.AF_ALG: "alg", unix.AF_XDP: "xdp", unix.AF_CAN: "can",
}

// Socket reports socket(2) that the filter is to refuse. Which address it was
// for nobody knows.
func (o *Observer) Socket(call *notify.Call) {
	number := int(int32(call.Args[0]))
	name, known := families[number]
	if !known {
		name = "family " + strconv.Itoa(number)
	}
	o.report(call, refusal{access: platform.RefusedConnect, target: name})
}

func family(raw []byte) int {
	if len(raw) < 2 {
		return unix.AF_UNSPEC
	}
	return int(binary.NativeEndian.Uint16(raw))
}

func rawAddress(call *notify.Call, at, size int) ([]byte, bool) {
	length := int32(call.Args[size])
	if length <= 0 || length > longestAddress {
		return nil, false
	}
	raw := make([]byte, length)
	return raw, call.Read(call.Args[at], raw) == nil
}

// address reads one of the internet (struct sockaddr_in, sockaddr_in6).
func address(call *notify.Call, at, size int) (netip.AddrPort, bool) {
	raw, ok := rawAddress(call, at, size)
	if !ok {
		return netip.AddrPort{}, false
	}
	switch {
	case family(raw) == unix.AF_INET && len(raw) >= 8:
		return netip.AddrPortFrom(netip.AddrFrom4([4]byte(raw[4:8])), binary.BigEndian.Uint16(raw[2:])), true
	case family(raw) == unix.AF_INET6 && len(raw) >= 24:
		return netip.AddrPortFrom(netip.AddrFrom16([16]byte(raw[8:24])).Unmap(), binary.BigEndian.Uint16(raw[2:])), true
	}
	return netip.AddrPort{}, false
}
