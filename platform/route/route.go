package route

import "net/netip"

// IsOwn reports whether an address is one of this machine's. On Linux the kernel
// is asked about its route, so that every address counts at which it would deliver
// to itself, whether an interface has it or not. Elsewhere those of the interfaces
// count. After an error the caller must take the address for the machine's own. It
// may be called from several goroutines.
func IsOwn(addr netip.Addr) (bool, error) {
	addr = addr.Unmap().WithZone("")
	if addr.IsLoopback() || addr.IsUnspecified() {
		return true, nil
	}
	return isOwn(addr)
}
