// Package rpc serves the protocol to one editor.
//
// Messages arrive in order on one goroutine. Notifications are carried out
// there and then, which keeps the order of a session's input; none of them may
// block. Each request runs on a goroutine of its own, so a slow one delays
// nobody. One goroutine writes, so that frames never mix. Faults of a single
// message are answered or logged; only a broken frame ends the connection.
package rpc
