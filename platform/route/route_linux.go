package route

import (
	"encoding/binary"
	"errors"
	"net/netip"

	"golang.org/x/sys/unix"
)

// errUnknown means that the kernel did not say whose an address is.
var errUnknown = errors.New("the kernel does not say whose an address is")

// isOwn asks for the route to an address.
func isOwn(addr netip.Addr) (bool, error) {
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
	err := Converse(unix.NETLINK_ROUTE, request, func(body []byte) error {
		const kindAt = 7 // rtm_type
		if len(body) < unix.SizeofRtMsg {
			return ErrCut
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
