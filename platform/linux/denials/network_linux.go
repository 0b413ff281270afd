package denials

import (
	"encoding/binary"
	"net/netip"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/linux/notify"
)

// longestAddress is sizeof(struct sockaddr_storage), the kernel's limit for an
// address.
const longestAddress = 128

// Connect checks connect(2) in a network namespace with only a loopback
// interface, where any other address is unreachable (ENETUNREACH).
func (o *Observer) Connect(call *notify.Call) { o.network(call, platform.RefusedConnect, 1, 2) }

// SendTo checks sendto(2) with an address, likewise.
func (o *Observer) SendTo(call *notify.Call) { o.network(call, platform.RefusedConnect, 4, 5) }

// Bind checks bind(2): in such a namespace no other address is local
// (EADDRNOTAVAIL).
func (o *Observer) Bind(call *notify.Call) { o.network(call, platform.RefusedBind, 1, 2) }

func (o *Observer) network(call *notify.Call, access platform.Refused, at, size int) {
	if to, ok := address(call, at, size); ok && !to.Addr().IsLoopback() && !to.Addr().IsUnspecified() &&
		!o.options.Own.Contains(to.Addr()) {
		o.report(call, refusal{
			access: access, target: to.String(), datagram: access == platform.RefusedConnect && isDatagram(call),
		})
	}
}

// isDatagram reports whether the socket of a call sends datagrams. If nobody
// can tell, as of a caller that is gone, it is false.
func isDatagram(call *notify.Call) bool {
	fd, err := call.Descriptor(int(int32(call.Args[0])))
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	kind, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TYPE)
	return err == nil && kind != unix.SOCK_STREAM
}

// BindUnix checks bind(2) of a Unix socket with a path, which creates a file. It
// reports whether it has refused the call.
func (o *Observer) BindUnix(call *notify.Call) (answered bool) {
	raw, ok := rawAddress(call, 1, 2)
	if raw != nil && !ok && o.started.Load() && !o.free() {
		call.Fail(unix.EFAULT) // see refuseMissing
		return true
	}
	const pathAt = 2
	if !ok || family(raw) != unix.AF_UNIX || len(raw) <= pathAt || raw[pathAt] == 0 {
		return false
	}
	name := unix.ByteSliceToString(raw[pathAt:])
	root, err := rootOf(call.TID)
	if err != nil {
		return o.refuseUnrooted(call, err)
	}
	defer unix.Close(root)
	w := newRequest(opCreate, 0)
	if o.started.Load() && !o.missing.empty() &&
		o.refuseCreation(call, root, creation{dir: unix.AT_FDCWD, text: name}) {
		return true
	}
	m := making{to: argument{dir: unix.AT_FDCWD}, kind: unix.S_IFSOCK}
	if o.started.Load() && len(o.options.Policy.GitDirs) > 0 && o.refuseMaking(call, root, name, m) {
		return true
	}
	loc, err := locate(call, root, unix.AT_FDCWD, name, false)
	if err != nil {
		return false
	}
	defer loc.close()
	if access, refused := o.decide(w, loc); refused && o.permitted(call, root, w, loc, access) {
		o.report(call, refusal{access: access, target: displayed(loc.path)})
	}
	return false
}

// families names the socket families that programs request for network access
// (linux/socket.h).
var families = [...]string{
	unix.AF_INET: "inet", unix.AF_INET6: "inet6", unix.AF_NETLINK: "netlink", unix.AF_PACKET: "packet",
	unix.AF_VSOCK: "vsock", unix.AF_BLUETOOTH: "bluetooth", unix.AF_ALG: "alg", unix.AF_XDP: "xdp", unix.AF_CAN: "can",
}

// Socket reports a socket(2) that the filter denies. The address it was meant
// for is unknown.
func (o *Observer) Socket(call *notify.Call) {
	number := int(int32(call.Args[0]))
	name := "family " + strconv.Itoa(number)
	if number >= 0 && number < len(families) && families[number] != "" {
		name = families[number]
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

// address reads an internet address (struct sockaddr_in, sockaddr_in6).
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
