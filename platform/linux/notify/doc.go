// Package notify answers system calls of sandboxed processes from outside the
// sandbox, through seccomp's user notification (seccomp_unotify(2)).
//
// A session whose filter sends calls here has one listener, which [Supervise]
// takes over. A goroutine waits for the next call: for some milliseconds itself,
// because the kernel hands over the processor only to a thread that waits for
// the listener, then in the runtime's poller. So sessions that make no calls
// need no threads. Slow calls are handled on goroutines of their own. See
// docs/design/predicted-denials.md.
//
// Nothing fails open. A call whose handler does not answer keeps waiting. Once
// the listener is closed, also by the death of this process, the kernel answers
// every such call with ENOSYS.
package notify
