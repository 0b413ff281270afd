// Package audit reads from the kernel's audit log what Landlock refuses to
// sessions.
//
// From Linux 6.15 on Landlock logs its refusals (ABI 7). Only who has
// CAP_AUDIT_READ in the initial user namespace may read the log, and only where
// audit is on; whether that is so here is found out by a refusal of our own,
// whose record must arrive. A record names the domain that has refused; the
// first of each domain is followed by one that names the process that has
// confined itself by it, which is how a [Log] knows whose session it is.
//
// The log is asynchronous and may drop records: nothing that a session may do
// depends on it.
package audit
