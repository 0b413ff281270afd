package handshake

import (
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"unsafe"

	"golang.org/x/sys/unix"
)

// CloseOnExec marks every descriptor from first on, so that exec keeps only the
// standard streams.
func CloseOnExec(first int) error {
	err := unix.CloseRange(uint(first), math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC)
	if !errors.Is(err, unix.ENOSYS) && !errors.Is(err, unix.EINVAL) {
		return err
	}
	// close_range(2) exists from Linux 5.9 on, its CLOEXEC flag from 5.11 on.
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return fmt.Errorf("list descriptors: %w", err)
	}
	for _, entry := range entries {
		if fd, err := strconv.Atoi(entry.Name()); err == nil && fd >= first {
			unix.CloseOnExec(fd)
		}
	}
	return nil
}

// kernelSigaction is struct sigaction as rt_sigaction(2) takes it on amd64 and
// arm64.
type kernelSigaction struct {
	handler  uintptr
	flags    uint64
	restorer uintptr
	mask     uint64
}

// SignalsAreReset reports whether a program that this thread starts has what
// resetSignals makes: every signal unblocked and at its default action.
// execve(2) resets handlers, so those of Go's runtime do not count.
func SignalsAreReset() bool {
	var blocked unix.Sigset_t
	if err := unix.PthreadSigmask(unix.SIG_BLOCK, nil, &blocked); err != nil || blocked != (unix.Sigset_t{}) {
		return false
	}
	for number := 1; number <= 64; number++ {
		var action kernelSigaction
		_, _, errno := unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(number), 0,
			uintptr(unsafe.Pointer(&action)), 8, 0, 0)
		if errno != 0 || action.handler == ignoreSignal {
			return false
		}
	}
	return true
}

const ignoreSignal = 1 // SIG_IGN

// resetSignals gives every signal its default action, but for those that are to
// be ignored, and unblocks all of them.
// execve(2) resets handlers but keeps ignored and blocked signals. An editor
// started under nohup, or one that ignores SIGTSTP, would pass that on to every
// shell. signal.Notify would do the same portably, but switches threads for
// each signal: 5 ms in all.
func resetSignals(ignored []int) error {
	var standard kernelSigaction
	ignore := kernelSigaction{handler: ignoreSignal}
	for number := 1; number <= 64; number++ {
		if number == int(unix.SIGKILL) || number == int(unix.SIGSTOP) {
			continue
		}
		action := &standard
		if slices.Contains(ignored, number) {
			action = &ignore
		}
		_, _, errno := unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(number),
			uintptr(unsafe.Pointer(action)), 0, 8, 0, 0)
		if errno != 0 {
			return fmt.Errorf("reset signal %d: %w", number, errno)
		}
	}
	var none unix.Sigset_t
	if err := unix.PthreadSigmask(unix.SIG_SETMASK, &none, nil); err != nil {
		return fmt.Errorf("unblock signals: %w", err)
	}
	return nil
}
