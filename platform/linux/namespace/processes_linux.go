package namespace

import (
	"errors"
	"fmt"
	"syscall"

	"golang.org/x/sys/unix"
)

// helperThreads are what the domain killer has of processes and threads, and
// what the init of a group has. Both are in the session's user namespace, so that
// they count.
const helperThreads = 8

// LimitProcesses limits the processes and threads of this process's user
// namespace (RLIMIT_NPROC, Linux 5.14). It is the last that the stage does, as it
// has threads itself, which end when it executes the program. A lower limit stays
// as it is. helpers says of each helper whether it runs.
func LimitProcesses(most int, helpers ...bool) error {
	limit, err := processLimit()
	if err != nil {
		return err
	}
	for _, helper := range helpers {
		if helper {
			most += helperThreads
		}
	}
	limit.Max = min(limit.Max, uint64(most))
	limit.Cur = min(limit.Cur, limit.Max)
	return setProcessLimit(limit)
}

// TryProcessLimit returns why the kernel does not limit this process's processes,
// or "": with a limit of none, it must not be able to fork.
func TryProcessLimit() (gap string, err error) {
	limit, err := processLimit()
	if err != nil {
		return "", err
	}
	none := limit
	none.Cur = 0
	if err := setProcessLimit(none); err != nil {
		return "", err
	}
	pid, errno := forkAndExit()
	if err := setProcessLimit(limit); err != nil {
		return "", err
	}
	switch {
	case errno == unix.EAGAIN:
		return "", nil
	case errno != 0:
		return "", fmt.Errorf("try the limit of processes: %w", errno)
	}
	for {
		if _, err := unix.Wait4(pid, nil, 0, nil); !errors.Is(err, unix.EINTR) {
			break
		}
	}
	return "the kernel does not refuse this user's", nil
}

// forkAndExit starts a process that ends at once. A process that was forked and
// not executed has half a Go runtime, so it may only call the kernel.
//
//go:norace
func forkAndExit() (int, unix.Errno) {
	pid, _, errno := syscall.RawSyscall6(unix.SYS_CLONE, uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0)
	if errno != 0 || pid != 0 {
		return int(pid), errno
	}
	for {
		_, _, _ = syscall.RawSyscall(unix.SYS_EXIT_GROUP, 0, 0, 0)
	}
}

func processLimit() (limit unix.Rlimit, err error) {
	if err := unix.Getrlimit(unix.RLIMIT_NPROC, &limit); err != nil {
		return limit, fmt.Errorf("find the limit of processes: %w", err)
	}
	return limit, nil
}

func setProcessLimit(limit unix.Rlimit) error {
	if err := unix.Setrlimit(unix.RLIMIT_NPROC, &limit); err != nil {
		return fmt.Errorf("limit processes: %w", err)
	}
	return nil
}
