package notify

import (
	"errors"

	"golang.org/x/sys/unix"
)

// Call is a system call that waits for an answer. Its methods are for the one
// goroutine that handles it.
type Call struct {
	session *Session
	// ID is the kernel's name for it.
	ID uint64
	// TID is the calling thread, as this process sees it.
	TID int
	// Arch and Number say which call it is; see Key.
	Arch   uint32
	Number int
	// Args are the registers. What the kernel declares as int is only the low
	// half of one.
	Args [6]uint64
}

// continueCall is SECCOMP_USER_NOTIF_FLAG_CONTINUE.
const continueCall = unix.SECCOMP_USER_NOTIF_FLAG_CONTINUE

// Continue lets the kernel carry the call out, with the arguments as they are
// then: another thread may have changed what they point to, and which file a
// descriptor is. It is right only where nothing was decided by those.
func (c *Call) Continue() { c.respond(response{flags: continueCall}) }

// Fail answers with an error.
func (c *Call) Fail(errno unix.Errno) { c.respond(response{errno: -int32(errno)}) }

// Succeed answers with 0.
func (c *Call) Succeed() { c.respond(response{}) }

// ReturnFD answers with a descriptor: the caller gets a duplicate, under the lowest
// number that is free, as from open(2). Ours stays open. Since Linux 5.14 both
// is one step, so that no caller that is interrupted in between keeps what it
// does not know of. The error is that of a caller that cannot have another, or
// is gone; the call has no answer then.
func (c *Call) ReturnFD(fd int, closeOnExec bool) error {
	add := addFD{id: c.ID, flags: unix.SECCOMP_ADDFD_FLAG_SEND, from: uint32(fd)}
	if closeOnExec {
		add.fdFlags = unix.O_CLOEXEC
	}
	var failed error
	err := c.session.control(func(listener int) { failed = sendFD(listener, add) })
	return errors.Join(err, failed)
}

// respond cannot fail in a way that anybody could mend: either the caller is
// gone or we are.
func (c *Call) respond(answer response) {
	answer.id = c.ID
	_ = c.session.control(func(fd int) { _ = respond(fd, c.session.sizes.response, answer) })
}

// Valid reports whether the caller still waits. What its methods have found out
// is to be trusted only where it does so afterwards: the numbers of threads are
// used again.
func (c *Call) Valid() bool {
	is := false
	_ = c.session.control(func(fd int) { is = valid(fd, c.ID) })
	return is
}
