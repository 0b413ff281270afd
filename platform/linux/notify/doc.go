// Package notify answers system calls of sandboxed processes from outside the
// sandbox, through seccomp's user notification (seccomp_unotify(2)).
//
// A session whose filter sends calls here has one listener, which [Supervise]
// takes over. Sessions need no threads: a goroutine waits for the listener in
// the runtime's poller, and slow calls are handled on goroutines of their own.
//
// Nothing fails open. A call whose handler does not answer keeps waiting. Once
// the listener is closed, also by the death of this process, the kernel answers
// every such call with ENOSYS.
package notify
