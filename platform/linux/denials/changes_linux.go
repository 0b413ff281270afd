package denials

import (
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/linux/notify"
)

// A session that has asked about no call that may change a file has changed
// none. Only the call's name and its registers count: memory, and so a path, may
// differ by the time the kernel reads it. See
// docs/design/tripwires-and-review.md.

// openChanges are the flags with which an open can change a file.
const openChanges = unix.O_ACCMODE | unix.O_CREAT | unix.O_TRUNC

// NoteChange notes that the session may have changed something. Before the
// target is executed it has no effect.
func (o *Observer) NoteChange() {
	if o.started.Load() {
		atomic.StoreUint32(&o.changed, 1)
	}
}

// MayHaveChanged reports whether the session may have changed something. It may
// be called once the notify session is closed.
func (o *Observer) MayHaveChanged() bool { return atomic.LoadUint32(&o.changed) != 0 }

// mayChange reports whether a call of one of Calls may change a file.
func mayChange(call *notify.Call, list []pathArg) bool {
	switch list[0].op {
	case opOpen:
		if list[0].flags == none { // creat, or flags in memory
			return true
		}
		flags := openFlags(uint32(call.Args[list[0].flags]))
		return flags&openChanges != 0 && flags&unix.O_PATH == 0
	case opExecute:
		return false
	}
	return true
}

// Noting returns a fast path that notes a change before it calls next, which may
// be nil.
func Noting(o *Observer, next func(*notify.Call) bool) func(*notify.Call) bool {
	return func(call *notify.Call) bool {
		o.NoteChange()
		return next != nil && next(call)
	}
}
