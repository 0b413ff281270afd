package notify

import (
	"errors"

	"golang.org/x/sys/unix"
)

// Call is a system call that waits for an answer. Only the goroutine that
// handles it may use its methods.
type Call struct {
	session *Session
	// ID is the kernel's id of the notification.
	ID uint64
	// TID is the calling thread, as numbered in this process's PID namespace.
	TID int
	// Arch and Number say which call it is; see Key.
	Arch   uint32
	Number int
	// Args are the argument registers. If the kernel declares an argument as
	// int, only the low 32 bits count.
	Args [6]uint64
}

// continueCall is SECCOMP_USER_NOTIF_FLAG_CONTINUE.
const continueCall = unix.SECCOMP_USER_NOTIF_FLAG_CONTINUE

// Continue lets the kernel carry out the call. Another thread may have changed
// the memory and the descriptors that the arguments refer to. So use it only if
// no security decision depends on them.
func (c *Call) Continue() { c.respond(response{flags: continueCall}) }

// Fail makes the call return an error.
func (c *Call) Fail(errno unix.Errno) { c.respond(response{errno: -int32(errno)}) }

// Succeed makes the call return 0.
func (c *Call) Succeed() { c.respond(response{}) }

// Return makes the call return a number that is no error.
func (c *Call) Return(value int) { c.respond(response{val: int64(value)}) }

// ReturnFD makes the call return a duplicate of fd, under the lowest free
// number, as open(2) does. fd stays open here. Since Linux 5.14 this is one
// step, so an interrupted caller keeps no descriptor that it does not know of.
// On an error the call has no answer yet: the caller has no free descriptor, or
// is gone.
func (c *Call) ReturnFD(fd int, closeOnExec bool) error {
	add := addFD{id: c.ID, flags: unix.SECCOMP_ADDFD_FLAG_SEND, from: uint32(fd)}
	if closeOnExec {
		add.fdFlags = unix.O_CLOEXEC
	}
	var failed error
	err := c.session.control(func(listener int) { failed = sendFD(listener, add) })
	return errors.Join(err, failed)
}

// respond ignores errors: either the caller is gone or the session is closed.
func (c *Call) respond(answer response) {
	answer.id = c.ID
	_ = c.session.control(func(fd int) { _ = respond(fd, c.session.sizes.response, answer) })
}

// Valid reports whether the caller still waits. Trust what other methods have
// returned only if Valid is true afterwards, because thread numbers are reused.
func (c *Call) Valid() bool {
	is := false
	_ = c.session.control(func(fd int) { is = valid(fd, c.ID) })
	return is
}
