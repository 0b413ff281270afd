// Package hosts decides which hosts of a network a session may connect to. It
// is pure: it resolves nothing and connects to nothing.
//
// [ParseAllowed] and [ParseDenied] read entries of the settings as a [Pattern].
// [New] makes [Rules] of them, which decide about a name or an address and a
// port. [Meet] is what two lists allow both. [Public] tells addresses of the
// Internet from those of private networks.
//
// See docs/design/network-by-host.md.
package hosts
