// Package sockets decides which Unix sockets a session may connect to, where
// Landlock cannot (before Linux 7.1), and connects for it.
//
// Each connect(2) and bind(2) of a session comes here by package notify. The
// decision is about one inode, which is then connected to, and about one
// socket, which is recognised by its cookie; no path is looked at twice. A
// session reaches the sockets that its policy grants, and those that were bound
// inside it. Datagram sockets are not its business: the filter lets a session
// make none, because sendmsg(2) could address any message of theirs anew.
package sockets
