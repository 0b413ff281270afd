// Package proxy lets sessions connect to the hosts that their rules allow, where
// nothing can connect their sockets for them: on macOS. It speaks HTTP and
// SOCKS, and serves only clients that know a session's token.
//
// See docs/design/network-by-host.md.
package proxy
