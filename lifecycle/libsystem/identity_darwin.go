package libsystem

import (
	"fmt"
	"syscall"
	"unsafe"
)

// Identity names a process for as long as the machine runs: unlike a process
// id, a unique id is not given away again.
type Identity struct {
	// UniqueID is the process's own.
	UniqueID uint64
	// ParentUniqueID is that of the process that forked it, also after that one
	// has ended and the process was given to another.
	ParentUniqueID uint64
}

// pidUniqueIdentifier is PROC_PIDUNIQIDENTIFIERINFO (bsd/sys/proc_info.h),
// which the kernel answers for every process, whoever asks.
const pidUniqueIdentifier = 17

// uniqueIdentifierInfo is struct proc_uniqidentifierinfo: 56 bytes.
type uniqueIdentifierInfo struct {
	_              [16]byte // the UUID of the executable
	uniqueID       uint64
	parentUniqueID uint64
	_              [24]byte
}

// IdentityOf asks for a process's identity. The error wraps ESRCH where there
// is no such process.
func IdentityOf(pid int) (Identity, error) {
	var info uniqueIdentifierInfo
	n, _, errno := syscall6(libc_proc_pidinfo_stub_address, uintptr(pid), pidUniqueIdentifier, 0,
		uintptr(unsafe.Pointer(&info)), unsafe.Sizeof(info), 0)
	switch {
	case int32(n) == int32(unsafe.Sizeof(info)):
		return Identity{UniqueID: info.uniqueID, ParentUniqueID: info.parentUniqueID}, nil
	case errno == 0:
		// proc_pidinfo answers 0 for a failure, which package syscall takes for
		// none; the process is gone, or the kernel's struct is another.
		errno = syscall.ESRCH
	}
	return Identity{}, fmt.Errorf("identify process %d: %w", pid, errno)
}
