package notify

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// yamaScope is Yama's setting of which processes may trace others (Linux
// Documentation/admin-guide/LSM/Yama.rst).
const yamaScope = "/proc/sys/kernel/yama/ptrace_scope"

// Reach returns nil if this process can read the memory of sandboxed processes,
// else the reason, in words for a user. It tries the call on itself, because a
// container engine's filter may forbid it.
func Reach() error {
	var from, into [1]byte
	local := []unix.Iovec{{Base: &into[0], Len: 1}}
	remote := []unix.RemoteIovec{{Base: uintptr(unsafe.Pointer(&from[0])), Len: 1}}
	if _, err := unix.ProcessVMReadv(os.Getpid(), local, remote, 0); err != nil {
		return fmt.Errorf("read memory of a process (process_vm_readv): %w", err)
	}
	return yamaAllows()
}

// ReachDescriptors is Reach for the descriptors of sandboxed processes. Docker's
// filter forbids this alone.
func ReachDescriptors() error {
	self, err := unix.PidfdOpen(os.Getpid(), 0)
	if err != nil {
		return fmt.Errorf("open a handle of a process: %w", err)
	}
	defer unix.Close(self)
	own, err := unix.Open("/", unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(own)
	copied, err := unix.PidfdGetfd(self, own, 0)
	if err != nil {
		return fmt.Errorf("duplicate a descriptor (pidfd_getfd, which container engines forbid): %w", err)
	}
	return unix.Close(copied)
}

// Values of yamaScope.
const (
	yamaOff         = 0
	yamaDescendants = 1 // a process may trace its descendants
	yamaAdmins      = 2
)

func yamaAllows() error {
	scope, err := readYama()
	if err != nil {
		return err
	}
	if scope > yamaAdmins || scope == yamaAdmins && !mayTrace() {
		return fmt.Errorf("processes may not trace others (kernel.yama.ptrace_scope is %d)", scope)
	}
	return nil
}

// OnlyDescendants reports whether this process can trace its descendants only.
func OnlyDescendants() bool {
	scope, err := readYama()
	return err == nil && scope == yamaDescendants && !mayTrace()
}

func readYama() (int, error) {
	text, err := os.ReadFile(yamaScope)
	if errors.Is(err, os.ErrNotExist) {
		return yamaOff, nil
	}
	if err != nil {
		return 0, err
	}
	scope, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return 0, fmt.Errorf("read %s: %w", yamaScope, err)
	}
	return scope, nil
}

func mayTrace() bool {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	return unix.Capget(&header, &data[0]) == nil && data[0].Effective&(1<<unix.CAP_SYS_PTRACE) != 0
}
