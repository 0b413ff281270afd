//go:build linux

package main

import (
	"fmt"
	"os"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

var chainActions = map[string]action{"chains": two(chains)}

const (
	// chainHops bounds a chain that a failed test leaves behind.
	chainHops = 200_000
	// pageSize is the size of the file that chains and test share.
	pageSize = 4096
)

// page is that file's content.
type page struct {
	stop   atomic.Uint64 // not 0: every chain must end
	chains [64]struct{ hops, pid atomic.Uint64 }
}

// chains starts chains of processes. Each process starts its successor in a
// session of its own and ends, so that no process id stays valid. It then waits
// until all chains have ended. The file has a page of zeros.
func chains(file, number string) error {
	n, err := strconv.Atoi(number)
	if err != nil || n > len(page{}.chains) {
		return fmt.Errorf("%w: %q chains", errMisuse, number)
	}
	opened, err := os.OpenFile(file, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	shared, err := unix.Mmap(int(opened.Fd()), 0, pageSize, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return err
	}
	p := (*page)(unsafe.Pointer(&shared[0]))
	for i := range n {
		if errno := fork(p, i); errno != 0 {
			return errno
		}
	}
	for range time.Tick(10 * time.Millisecond) {
		if p.stop.Load() != 0 {
			return nil
		}
	}
	return nil
}

// fork makes the first process of a chain. A process that was forked and not
// executed has one thread and half a Go runtime. So the chain uses only system
// calls and atomic operations, which also makes it as fast as possible.
//
//go:norace
func fork(p *page, i int) unix.Errno {
	chain := &p.chains[i]
	pid, _, errno := syscall.RawSyscall6(unix.SYS_CLONE, uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0)
	if errno != 0 || pid != 0 {
		return errno
	}
	for p.stop.Load() == 0 && chain.hops.Add(1) < chainHops {
		_, _, _ = syscall.RawSyscall(unix.SYS_SETSID, 0, 0, 0)
		self, _, _ := syscall.RawSyscall(unix.SYS_GETPID, 0, 0, 0)
		chain.pid.Store(uint64(self))
		// If no process can be made for now, it is tried again.
		pid, _, errno = syscall.RawSyscall6(unix.SYS_CLONE, uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0)
		if errno == 0 && pid != 0 {
			break
		}
	}
	for {
		_, _, _ = syscall.RawSyscall(unix.SYS_EXIT_GROUP, 0, 0, 0)
	}
}
