// Package loopback has the addresses that a session has of its own on its
// loopback interface. They are constants: names of hosts are package hosts'.
package loopback

import "net/netip"

// Own is the prefix that a session has on its loopback interface. Each name
// that the session looks up gets an address of it. It is meant for tests of
// devices (RFC 2544), so no network has it.
var Own = netip.MustParsePrefix("198.18.0.0/15")

// Addresses in Own that have a meaning of their own. The first 256 are never
// given to names.
var (
	// Gateway is the session's own address.
	Gateway = netip.MustParseAddr("198.18.0.1")
	// Resolver is where the resolver answers, at ResolverPort.
	Resolver = netip.MustParseAddr("198.18.0.2")
	// Reserved are the addresses that are never given to names.
	Reserved = netip.MustParsePrefix("198.18.0.0/24")
)

// ResolverPort is where the resolver answers.
const ResolverPort = 53
