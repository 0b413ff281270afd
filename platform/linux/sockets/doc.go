// Package sockets decides which Unix sockets a session may connect to, and
// connects for it. Landlock can do this itself only from Linux 7.1 on.
//
// Each connect(2) and bind(2) of a session arrives here through package notify.
// A session reaches the sockets that its policy grants and those that it has
// bound itself. The [Mediator] decides about one open inode and then connects
// to that inode; it recognises the session's own sockets by their cookies. It
// resolves no path twice.
//
// The filter lets sessions create no datagram sockets, because sendmsg(2) could
// choose another address for each message.
//
// See docs/design/unix-sockets.md.
package sockets
