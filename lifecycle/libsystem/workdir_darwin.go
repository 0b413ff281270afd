package libsystem

import (
	"bytes"
	"fmt"
	"syscall"
	"unsafe"
)

// pidVnodePaths is PROC_PIDVNODEPATHINFO (bsd/sys/proc_info.h).
const pidVnodePaths = 9

// vnodePaths is struct proc_vnodepathinfo: the working directory and the root,
// each with 152 bytes about the vnode before its path.
type vnodePaths struct {
	_    [152]byte
	dir  [1024]byte
	_    [152]byte
	root [1024]byte
}

// WorkingDir returns the working directory of a process of this user.
func WorkingDir(pid int) (string, error) {
	var info vnodePaths
	n, _, errno := syscall6(libc_proc_pidinfo_stub_address, uintptr(pid), pidVnodePaths, 0,
		uintptr(unsafe.Pointer(&info)), unsafe.Sizeof(info), 0)
	switch {
	case int32(n) == int32(unsafe.Sizeof(info)):
		dir, _, _ := bytes.Cut(info.dir[:], []byte{0})
		return string(dir), nil
	case errno == 0:
		errno = syscall.ESRCH // see IdentityOf
	}
	return "", fmt.Errorf("find working directory of process %d: %w", pid, errno)
}
