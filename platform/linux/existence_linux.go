package linux

import (
	"errors"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/lifecycle/proc"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/linux/denials"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/linux/notify"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/linux/seccomp"
)

// existence answers signal 0, which asks whether a process exists and sends
// nothing. Landlock refuses it like every signal to a process outside, and
// language servers end if their editor is gone. So the sidecar answers about the
// ancestors of a session, the editor among them, as the kernel would without a
// sandbox. See docs/design/signal-zero.md.
type existence struct {
	// ancestors are those of the leader, from its start on: if one ends, it has
	// another parent. By process id.
	ancestors map[int]proc.ID
}

// existenceFor finds the ancestors of a leader.
func existenceFor(leader int) existence {
	e := existence{ancestors: map[int]proc.ID{}}
	entry, err := proc.Find(leader)
	for range maxAncestors {
		if err != nil || entry.Parent <= 0 {
			break
		}
		if entry, err = proc.Find(entry.Parent); err == nil {
			e.ancestors[entry.PID] = entry.ID
		}
	}
	return e
}

// handle puts the answers in front of the handlers of the calls in
// [seccomp.ExistenceCalls], which are about signals that are sent. Calls without
// a handler continue.
func (e existence) handle(handlers map[string]notify.Handler) {
	for _, name := range seccomp.ExistenceCalls() {
		handler := handlers[name]
		if handler.Handle == nil {
			handler.Handle = (*notify.Call).Continue
		}
		target := func(call *notify.Call) int { return int(int32(call.Args[0])) }
		if name == "pidfd_send_signal" {
			target = denials.Target
		}
		handler.FastPath = func(call *notify.Call) bool {
			if int32(call.Args[1]) != 0 {
				return false
			}
			if !e.answer(call, target(call)) {
				call.Continue()
			}
			return true
		}
		handlers[name] = handler
	}
}

// answer answers a call about an ancestor, and reports whether it has. Another
// process may have got the number of one that has ended: nothing is said about
// that.
func (e existence) answer(call *notify.Call, pid int) bool {
	known, is := e.ancestors[pid]
	if !is {
		return false
	}
	now, err := proc.Find(pid)
	if errors.Is(err, unix.ESRCH) {
		call.Fail(unix.ESRCH)
		return true
	}
	if err != nil || now.ID != known {
		return false
	}
	caller, err := call.Identity()
	if err != nil {
		return false
	}
	var found error
	if caller.As(func() { found = unix.Kill(pid, 0) }) != nil {
		return false
	}
	var errno unix.Errno
	switch {
	case found == nil:
		call.Succeed()
	case errors.As(found, &errno):
		call.Fail(errno)
	default:
		return false
	}
	return true
}
