package notify

import (
	"sync"

	"golang.org/x/sys/unix"
)

// Gate lets processes and threads be started until it is sealed. The zero value is open.
type Gate struct {
	mu     sync.RWMutex // held for reading while a start is let through
	sealed bool
}

// Seal refuses every start from now on. When it returns none can be let through any more.
func (g *Gate) Seal() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.sealed = true
}

// canaryFlags are CLONE_THREAD without what it needs (clone(2)): a kernel answers EINVAL.
const canaryFlags = unix.CLONE_THREAD

// Handler answers clone, fork and vfork. To let them go on is right, as nothing is decided by their arguments.
func (g *Gate) Handler() Handler {
	return Handler{Quick: true, Handle: func(call *Call) {
		g.mu.RLock()
		defer g.mu.RUnlock()
		if g.sealed || call.Args[0] == canaryFlags {
			call.Fail(unix.EAGAIN)
			return
		}
		call.Continue()
	}}
}

// ProveGate makes sure that a gate answers for the calling thread, by a start that no kernel answers so.
func ProveGate() error {
	_, _, errno := unix.Syscall6(unix.SYS_CLONE, canaryFlags, 0, 0, 0, 0, 0)
	return Expect("start a process through the gate", errno, unix.EAGAIN)
}
