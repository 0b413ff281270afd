package seccomp

import "fmt"

// Action is what a filter answers (SECCOMP_RET_*, linux/seccomp.h).
type Action uint32

const (
	actionAllow Action = 0x7fff0000
	// actionKill ends the whole process, so that no other thread goes on with
	// half the work.
	actionKill  Action = 0x80000000
	actionErrno Action = 0x00050000
	// actionNotify asks the supervisor; without one the kernel answers ENOSYS.
	actionNotify Action = 0x7fc00000
)

// refuse answers the call with an error of Linux (asm-generic/errno*.h), the
// same numbers on every architecture here.
func refuse(errno Errno) Action { return actionErrno | Action(errno) }

// Errno is an error number of Linux, whatever system this is built for.
type Errno uint16

// The errors that rules answer with.
const (
	eperm           Errno = 1
	eacces          Errno = 13
	enosys          Errno = 38
	eprotonosupport Errno = 93
	eafnosupport    Errno = 97
)

var errnoNames = map[Errno]string{
	eperm: "EPERM", eacces: "EACCES", enosys: "ENOSYS", eprotonosupport: "EPROTONOSUPPORT", eafnosupport: "EAFNOSUPPORT",
}

// String is the name, or a number where it has none here.
func (e Errno) String() string {
	if name, known := errnoNames[e]; known {
		return name
	}
	return fmt.Sprintf("errno %d", uint16(e))
}

// String says what the kernel does.
func (a Action) String() string {
	switch {
	case a == actionAllow:
		return "allow"
	case a == actionKill:
		return "kill process"
	case a == actionNotify:
		return "ask supervisor"
	case a&^0xffff == actionErrno:
		return Errno(a & 0xffff).String()
	}
	return fmt.Sprintf("%#x", uint32(a))
}
