// Package meeting lets processes of one user that have the same key find what the
// first of them has started. The places are files below the state directory, which
// no session writes.
package meeting
