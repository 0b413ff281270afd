// Package audit reads Landlock's denials from the kernel's audit log.
//
// Landlock logs its denials from Linux 6.15 on (ABI 7). Reading the log needs
// CAP_AUDIT_READ in the initial user namespace, and audit must be on. [Open]
// finds out by a canary: a denial of this process's own, whose record must
// arrive. A record names the Landlock domain. The first record of each domain
// is followed by one that names the process which created it, so a [Log] knows
// whose session it is.
//
// The log is asynchronous and may drop records. No decision about a session
// depends on it.
//
// See docs/design/predicted-denials.md.
package audit
