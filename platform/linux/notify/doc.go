// Package notify answers system calls of sandboxed processes from outside, by
// seccomp's user notification (seccomp_unotify(2)).
//
// A session whose filter sends calls here has one listener, which [Supervise]
// takes over. No thread belongs to a session: a goroutine waits for its
// listener in the runtime's poller, and calls that take time are handled by
// goroutines of their own. Nothing fails open: a call whose handler does not
// answer waits, and once the listener is closed, by us or by our death, the
// kernel answers every such call with ENOSYS.
package notify
