// Package route says whether an address is one of this machine's. Servers here may
// rely on that only local programs reach them.
//
// On Linux the kernel is asked by netlink(7), which [Converse] speaks. See
// docs/design/localhost.md.
package route
