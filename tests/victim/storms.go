//go:build linux

package main

import (
	"fmt"
	"runtime"
	"strconv"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

var stormActions = map[string]action{
	"storm":         one(storm),
	"storm-threads": one(stormThreads),
	"crowd":         one(crowd),
}

// tally is memory that all processes of a storm share.
type tally struct {
	forks, most uint64
	full        uint64 // not 0: the kernel has refused a process
}

// storm forks processes that all fork, as far as the kernel lets them, and never
// more than most in all. It prints "full" when the kernel has refused one.
func storm(most string) error {
	n, err := strconv.ParseUint(most, 10, 32)
	if err != nil {
		return fmt.Errorf("%w: %q processes", errMisuse, most)
	}
	shared, err := unix.Mmap(-1, 0, pageSize, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_ANONYMOUS)
	if err != nil {
		return err
	}
	t := (*tally)(unsafe.Pointer(&shared[0]))
	t.most = n
	rage(t, []byte("full\n"))
	return nil
}

// stormPause keeps a storm at its limit from taking every processor.
var stormPause = unix.Timespec{Nsec: int64(5 * time.Millisecond)}

// rage is the life of every process of a storm. A process that was forked and
// not executed has half a Go runtime, and the first one could start no thread.
// So all of them use only system calls.
//
//go:norace
//go:nosplit
func rage(t *tally, message []byte) {
	first := true
	for pause := 0; pause < 60_000; pause++ { // five minutes, if a test leaves it behind
		if t.forks < t.most {
			t.forks++
			pid, _, errno := syscall.RawSyscall6(unix.SYS_CLONE, uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0)
			switch {
			case errno != 0:
				t.forks--
				t.full = 1
			case pid == 0:
				first = false
				continue
			default:
				continue
			}
		}
		if first && t.full != 0 {
			_, _, _ = syscall.RawSyscall(unix.SYS_WRITE, 1, uintptr(unsafe.Pointer(&message[0])), uintptr(len(message)))
			first = false
		}
		_, _, _ = syscall.RawSyscall(unix.SYS_NANOSLEEP, uintptr(unsafe.Pointer(&stormPause)), 0, 0)
	}
	for {
		_, _, _ = syscall.RawSyscall(unix.SYS_EXIT_GROUP, 0, 0, 0)
	}
}

// crowd has so many processes at once, and ends them.
func crowd(number string) error {
	n, err := strconv.Atoi(number)
	if err != nil {
		return fmt.Errorf("%w: %q processes", errMisuse, number)
	}
	var children []int
	var refused error
	for len(children) < n && refused == nil {
		pid, errno := forkAndWait()
		if errno != 0 {
			refused = errno
			continue
		}
		children = append(children, pid)
	}
	for _, pid := range children {
		_ = unix.Kill(pid, unix.SIGKILL)
		_, _ = unix.Wait4(pid, nil, 0, nil)
	}
	return refused
}

// forkAndWait starts a process that waits until it is killed, or its parent is.
//
//go:norace
func forkAndWait() (int, unix.Errno) {
	pid, _, errno := syscall.RawSyscall6(unix.SYS_CLONE, uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0)
	if errno != 0 || pid != 0 {
		return int(pid), errno
	}
	_, _, _ = syscall.RawSyscall6(unix.SYS_PRCTL, unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0, 0)
	for {
		_, _, _ = syscall.RawSyscall(unix.SYS_NANOSLEEP, uintptr(unsafe.Pointer(&stormPause)), 0, 0)
	}
}

// stormThreads starts threads, never more than most. At the kernel's limit, Go
// tries for a fifth of a second, and then ends the program.
func stormThreads(most string) error {
	n, err := strconv.Atoi(most)
	if err != nil {
		return fmt.Errorf("%w: %q threads", errMisuse, most)
	}
	for range n {
		go func() {
			runtime.LockOSThread()
			<-time.After(time.Minute)
		}()
		runtime.Gosched()
	}
	<-time.After(time.Minute)
	return nil
}
