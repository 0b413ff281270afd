// Package reserve divides what the kernel allows the user of processes and
// threads between this program and its sessions.
//
// A session's leader is started by [Leave], and makes its limit final by [Seal].
package reserve
