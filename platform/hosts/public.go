package hosts

import "net/netip"

// special are addresses that no host of the Internet has, or that belong to the
// network that this machine is in. Source: IANA's registries of special-purpose
// addresses.
var special = prefixes(
	"0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24",
	"192.0.2.0/24", "192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24",
	"224.0.0.0/3",
	"168.63.129.16/32", // Azure's own services, for each machine
	"2001::/23",        // Teredo, benchmarks, ORCHID and others
	"2001:db8::/32", "2002::/16", "3fff::/20",
)

// global are the IPv6 addresses of hosts; translated those of IPv4 hosts behind
// a translator (RFC 6052).
var (
	global     = netip.MustParsePrefix("2000::/3")
	translated = netip.MustParsePrefix("64:ff9b::/96")
	linkLocal  = prefixes("169.254.0.0/16", "fe80::/10")
	local      = prefixes("0.0.0.0/8", "127.0.0.0/8", "198.18.0.0/15", "224.0.0.0/4", "255.255.255.255/32",
		"::/127", "ff00::/8")
)

// credentials are the addresses of services that give a cloud's machine its own
// credentials.
var credentials = prefixes("169.254.0.0/16", "fe80::/10", "fd00:ec2::254/128", "100.100.100.200/32", "168.63.129.16/32")

// Credentials reports whether a target may give a program the credentials of
// this machine.
func (t Target) Credentials() bool {
	addr, err := netip.ParseAddr(t.Host)
	return err == nil && within(credentials, plain(addr))
}

// Unreachable reports whether no entry lets a session connect to a target: it is
// an address of this machine or of many hosts.
func (t Target) Unreachable() bool {
	addr, err := netip.ParseAddr(t.Host)
	return err == nil && never(plain(addr))
}

// plain is the IPv4 address in an IPv6 address that means it.
func plain(addr netip.Addr) netip.Addr {
	addr = addr.Unmap().WithZone("")
	if translated.Contains(addr) {
		raw := addr.As16()
		return netip.AddrFrom4([4]byte(raw[12:]))
	}
	return addr
}

func prefixes(texts ...string) []netip.Prefix {
	list := make([]netip.Prefix, len(texts))
	for i, text := range texts {
		list[i] = netip.MustParsePrefix(text)
	}
	return list
}

func within(list []netip.Prefix, addr netip.Addr) bool {
	for _, prefix := range list {
		if prefix.Contains(addr) {
			return true
		}
	}
	return false
}

// Public reports whether an address is one of the Internet's. Private networks,
// the loopback interface, link-local addresses, services of a cloud for its own
// machines, multicast and addresses without meaning are not.
func Public(addr netip.Addr) bool {
	addr = addr.Unmap().WithZone("")
	switch {
	case translated.Contains(addr):
		raw := addr.As16()
		return Public(netip.AddrFrom4([4]byte(raw[12:])))
	case addr.Is6():
		return global.Contains(addr) && !within(special, addr)
	}
	return addr.IsValid() && !within(special, addr)
}

// never reports whether no prefix grants an address: it means this machine, the
// session itself, or many hosts.
func never(addr netip.Addr) bool { return within(local, addr) }
