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
