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
	"storm":         storm,
	"storm-threads": one(stormThreads),
	"crowd":         one(crowd),
	"take":          take,
}

// tally is memory that all processes of a storm share.
type tally struct {
	forks, most uint64
	full        uint64 // not 0: the kernel has refused a process
}

// storm forks processes that all fork, as far as the kernel lets them, and never
// more than most in all. It prints "full" when the kernel has refused one. Each
// process pauses for 5 ms between two attempts, or as many as a second argument
// says.
func storm(args []string) error {
	if len(args) == 0 || len(args) > 2 {
		return fmt.Errorf("%w: a number of processes and a pause wanted", errMisuse)
	}
	n, err := strconv.ParseUint(args[0], 10, 32)
	if err != nil {
		return fmt.Errorf("%w: %q processes", errMisuse, args[0])
	}
	if len(args) == 2 {
		pause, err := strconv.Atoi(args[1])
		if err != nil {
			return fmt.Errorf("%w: a pause of %q ms", errMisuse, args[1])
		}
		stormPause = unix.NsecToTimespec(int64(pause) * int64(time.Millisecond))
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

// take takes megabytes of memory of a kind, prints "taken", and keeps them for a
// minute. A path is a file to write them to, as in a tmpfs.
func take(args []string) error {
	if len(args) != 2 {
		return fmt.Errorf("%w: a kind or path and a number wanted", errMisuse)
	}
	n, err := strconv.Atoi(args[1])
	if err != nil {
		return fmt.Errorf("%w: %q megabytes", errMisuse, args[1])
	}
	switch kind := args[0]; kind {
	case "private":
		err = takeMapped(n, unix.MAP_PRIVATE)
	case "shared":
		err = takeMapped(n, unix.MAP_SHARED)
	case "system-v":
		err = takeSystemV(n)
	case "memfd":
		var fd int
		if fd, err = unix.MemfdCreate(kind, unix.MFD_CLOEXEC); err == nil {
			err = takeWritten(fd, n)
		}
	default:
		var fd int
		if fd, err = unix.Open(kind, unix.O_WRONLY|unix.O_CREAT|unix.O_CLOEXEC, 0o600); err == nil {
			err = takeWritten(fd, n)
		}
	}
	if err != nil {
		return err
	}
	fmt.Println("taken")
	<-time.After(time.Minute)
	return nil
}

const megabyte = 1 << 20

func takeMapped(n, how int) error {
	// Without MAP_NORESERVE the kernel refuses more than the whole machine has.
	how |= unix.MAP_ANONYMOUS | unix.MAP_NORESERVE
	memory, err := unix.Mmap(-1, 0, n*megabyte, unix.PROT_READ|unix.PROT_WRITE, how)
	if err != nil {
		return err
	}
	touch(memory)
	return nil
}

// takeSystemV leaves a segment that outlives this process.
func takeSystemV(n int) error {
	const noReserve = 0o10000 // SHM_NORESERVE, see takeMapped
	id, err := unix.SysvShmGet(unix.IPC_PRIVATE, n*megabyte, 0o600|noReserve)
	if err != nil {
		return err
	}
	memory, err := unix.SysvShmAttach(id, 0, 0)
	if err != nil {
		return err
	}
	touch(memory)
	return nil
}

func touch(memory []byte) {
	for i := 0; i < len(memory); i += pageSize {
		memory[i] = 1
	}
}

// takeWritten fills a file, which is in no process's address space.
func takeWritten(fd, n int) error {
	block := make([]byte, megabyte)
	for range n {
		if _, err := unix.Write(fd, block); err != nil {
			return err
		}
	}
	return nil
}
