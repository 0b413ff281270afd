// Package usersocket has Unix sockets on which processes of one user talk to
// each other, and no session talks to any of them.
//
// A socket lies in a private directory just below the state directory, which no
// session may write. Both ends check whose process the other is. The messages are
// lines of JSON, with files beside them if the receiver takes any. Whatever else
// a peer sends ends its connection.
package usersocket
