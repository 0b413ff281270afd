package libsystem

import (
	"fmt"
	"syscall"
	"unsafe"
)

// Identity identifies a process as long as the machine runs: unlike a process
// id, a unique id is never reused.
type Identity struct {
	// UniqueID is the process's own.
	UniqueID uint64
	// ParentUniqueID belongs to the process that forked it, even after that has
	// ended and another process has adopted the child.
	ParentUniqueID uint64
}

// pidUniqueIdentifier is PROC_PIDUNIQIDENTIFIERINFO (bsd/sys/proc_info.h),
// which the kernel answers for every process and every caller.
const pidUniqueIdentifier = 17

// uniqueIdentifierInfo is struct proc_uniqidentifierinfo: 56 bytes.
type uniqueIdentifierInfo struct {
	_              [16]byte // the UUID of the executable
	uniqueID       uint64
	parentUniqueID uint64
	_              [24]byte
}

// IdentityOf returns a process's identity. The error wraps ESRCH if there is no
// such process.
func IdentityOf(pid int) (Identity, error) {
	var info uniqueIdentifierInfo
	n, _, errno := syscall6(libc_proc_pidinfo_stub_address, uintptr(pid), pidUniqueIdentifier, 0,
		uintptr(unsafe.Pointer(&info)), unsafe.Sizeof(info), 0)
	switch {
	case int32(n) == int32(unsafe.Sizeof(info)):
		return Identity{UniqueID: info.uniqueID, ParentUniqueID: info.parentUniqueID}, nil
	case errno == 0:
		// proc_pidinfo returns 0 on failure, which package syscall takes for
		// success. The process is gone, or the kernel's struct has another
		// size.
		errno = syscall.ESRCH
	}
	return Identity{}, fmt.Errorf("identify process %d: %w", pid, errno)
}
