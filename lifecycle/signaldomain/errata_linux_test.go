package signaldomain

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"testing"
	"unsafe"

	ll "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// Linux 6.12 to 6.14 have signal scopes and cannot say which errata they have
// fixed. go-landlock's Config.Restrict takes them for kernels without scopes;
// see docs/design/dependencies.md.
func TestRestrict_WorksOnKernelsThatCannotReportErrata(t *testing.T) {
	t.Parallel()
	const signalABI = 6
	if abi, err := ll.LandlockGetABIVersion(); err != nil || abi < signalABI {
		harness.Skip(t, "signal_domains", fmt.Sprintf("Landlock's ABI is %d: %v", abi, err))
	}
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // for good: the thread ends with the goroutine
		done <- restrictWithoutErrata()
	}()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// restrictWithoutErrata hides the query of errata from the calling thread,
// enters a signal domain and proves that it is inside.
func restrictWithoutErrata() error {
	if err := hideErrata(); err != nil {
		return err
	}
	if errata, err := ll.LandlockGetErrata(); !errors.Is(err, unix.EINVAL) {
		return fmt.Errorf("the query of errata is not hidden: %#x, %w", errata, errors.Join(err, unix.ENOTSUP))
	}
	if err := unix.Kill(os.Getppid(), 0); err != nil {
		return fmt.Errorf("signal the parent before: %w", err)
	}
	if err := Restrict(); err != nil {
		return err
	}
	if err := unix.Kill(os.Getppid(), 0); !errors.Is(err, unix.EPERM) {
		return fmt.Errorf("signal the parent after: %w", errors.Join(err, unix.ENOTSUP))
	}
	return nil
}

// hideErrata makes landlock_create_ruleset(2) with the flag for errata fail on
// this thread, as on kernels that do not know the flag.
func hideErrata() error {
	const number, flags = 0, 16 + 2*8 // offsets in struct seccomp_data: nr, and args[2]
	program := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: number},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: unix.SYS_LANDLOCK_CREATE_RULESET, Jf: 3},
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: flags},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: unix.LANDLOCK_CREATE_RULESET_ERRATA, Jf: 1},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | uint32(unix.EINVAL)},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("set no_new_privs: %w", err)
	}
	filter := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	err := unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(unsafe.Pointer(&filter)), 0, 0)
	runtime.KeepAlive(program)
	if err != nil {
		return fmt.Errorf("install filter: %w", err)
	}
	return nil
}
