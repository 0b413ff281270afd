// Package network lets a session connect to some hosts and to no others. The
// session is in a network namespace of its own, from which no route leads out.
//
// The [Resolver] answers each name that the session looks up by an address of
// the session's own ([Names]), and asks nobody. The session's connect(2) to such
// an address arrives at the [Connector]. It decides by the name, connects to the
// real host, and connects the caller's own socket to a relay inside the
// namespace, which copies between both.
//
// See docs/design/network-by-host.md.
package network
