//go:build !linux

package route

import (
	"net"
	"net/netip"
)

// isOwn looks for an address at the interfaces.
func isOwn(addr netip.Addr) (bool, error) {
	list, err := net.InterfaceAddrs()
	if err != nil {
		return false, err
	}
	for _, a := range list {
		prefix, err := netip.ParsePrefix(a.String())
		if err == nil && prefix.Addr().Unmap().WithZone("") == addr {
			return true, nil
		}
	}
	return false, nil
}
