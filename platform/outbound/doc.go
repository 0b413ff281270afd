// Package outbound connects to hosts on behalf of sessions, and copies bytes
// between both.
//
// [Dialer] connects to a name or an address that the rules of a session allow,
// as seen from this machine. [Relay] copies between a session's connection and
// the host's. If the session begins with TLS, the name that it asks for must be
// allowed, too. [Copy] copies without a look at the bytes.
//
// See docs/design/network-by-host.md.
package outbound
