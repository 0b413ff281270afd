package seccomp

import "fmt"

// Action is what the kernel does with a call (SECCOMP_RET_*, linux/seccomp.h).
type Action uint32

const (
	actionAllow Action = 0x7fff0000
	// actionKill kills the whole process, so that no other thread continues
	// with half the work.
	actionKill  Action = 0x80000000
	actionErrno Action = 0x00050000
	// actionNotify asks the supervisor. The kernel answers ENOSYS if there is
	// none.
	actionNotify Action = 0x7fc00000
)

// Errno is an error number of Linux, on whatever system this runs. The numbers
// are the same on all architectures that this package knows
// (asm-generic/errno*.h).
type Errno uint16

// The errors that rules answer.
const (
	eperm           Errno = 1
	eacces          Errno = 13
	enosys          Errno = 38
	eprotonosupport Errno = 93
	eopnotsupp      Errno = 95
	eafnosupport    Errno = 97
)

// The actions that answer a call with an error. They are constants, so that the
// linker lays out the rules and no process fills them in when it starts.
const (
	refuseEPERM           = actionErrno | Action(eperm)
	refuseEACCES          = actionErrno | Action(eacces)
	refuseENOSYS          = actionErrno | Action(enosys)
	refuseEPROTONOSUPPORT = actionErrno | Action(eprotonosupport)
	refuseEOPNOTSUPP      = actionErrno | Action(eopnotsupp)
	refuseEAFNOSUPPORT    = actionErrno | Action(eafnosupport)
)

// String is the name, or the number if the name is not known here.
func (e Errno) String() string {
	switch e {
	case eperm:
		return "EPERM"
	case eacces:
		return "EACCES"
	case enosys:
		return "ENOSYS"
	case eprotonosupport:
		return "EPROTONOSUPPORT"
	case eopnotsupp:
		return "EOPNOTSUPP"
	case eafnosupport:
		return "EAFNOSUPPORT"
	}
	return fmt.Sprintf("errno %d", uint16(e))
}

// String describes the action for golden files and errors.
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
