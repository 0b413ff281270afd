//go:build linux

package main

import (
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// attempts are enough to win either race some hundred times without a sandbox.
// They must take some time, because all of them could fit into one time slice
// in which the other threads do not run. On a busy machine the timeout ends
// them earlier, and a few wins are enough.
const (
	attempts = 3000
	some     = time.Second
	timeout  = 5 * time.Second
)

// serve greets every client of a socket of the victim's own.
func serve(path string) error {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err == nil {
		err = unix.Bind(fd, &unix.SockaddrUnix{Name: path})
	}
	if err == nil {
		err = unix.Listen(fd, 64)
	}
	if err != nil {
		return err
	}
	go func() {
		for {
			conn, _, err := unix.Accept(fd)
			if err != nil {
				return
			}
			_, _ = unix.Write(conn, []byte("inside"))
			unix.Close(conn)
		}
	}()
	return nil
}

// encode is a sockaddr_un of full length, because the race needs addresses of
// one length.
func encode(path string) (raw [110]byte) {
	raw[0] = unix.AF_UNIX
	copy(raw[2:], path)
	return raw
}

// twist changes something back and forth, on a thread of its own, until end is
// called.
func twist(to, fro func()) (end func()) {
	var over atomic.Bool
	var done sync.WaitGroup
	done.Go(func() {
		runtime.LockOSThread()
		for !over.Load() {
			to()
			fro()
		}
	})
	return func() {
		over.Store(true)
		done.Wait()
	}
}

// flip connects to a socket of its own while other threads overwrite the
// address with the outside one's.
func flip(args []string) error {
	good, bad := args[0], args[1]
	if err := serve(good); err != nil {
		return err
	}
	shared, err := unix.Mmap(-1, 0, 4096, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_ANONYMOUS)
	if err != nil {
		return err
	}
	to, fro := encode(bad), encode(good)
	for range 2 {
		defer twist(func() { copy(shared, to[:]) }, func() { copy(shared, fro[:]) })()
	}
	return tally(func() (int, error) {
		fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return -1, err
		}
		_, _, _ = unix.Syscall(unix.SYS_CONNECT, uintptr(fd), uintptr(unsafe.Pointer(&shared[0])), uintptr(len(to)))
		return fd, nil
	})
}

// swap connects a descriptor that is a network socket. Meanwhile another thread
// makes it a Unix socket, and the address the outside server's.
func swap(args []string) error {
	shared, err := unix.Mmap(-1, 0, 4096, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_ANONYMOUS)
	if err != nil {
		return err
	}
	var harmless [110]byte
	harmless[0] = unix.AF_INET // 0.0.0.0:0, where nothing listens
	to := encode(args[0])
	network, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	const number = 100
	return tally(func() (int, error) {
		local, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return -1, err
		}
		copy(shared, harmless[:])
		if err := unix.Dup3(network, number, unix.O_CLOEXEC); err != nil {
			return -1, err
		}
		end := twist(
			func() { copy(shared, to[:]); _ = unix.Dup3(local, number, unix.O_CLOEXEC) },
			func() { copy(shared, harmless[:]); _ = unix.Dup3(network, number, unix.O_CLOEXEC) },
		)
		for range 8 {
			_, _, _ = unix.Syscall(unix.SYS_CONNECT, number, uintptr(unsafe.Pointer(&shared[0])), uintptr(len(to)))
		}
		end()
		return local, nil
	})
}

// tally repeats an attempt, and prints how often each server has greeted.
func tally(try func() (int, error)) error {
	heard := map[string]int{}
	begun := time.Now()
	for i := 0; (i < attempts || time.Since(begun) < some) && time.Since(begun) < timeout; i++ {
		fd, err := try()
		if err != nil {
			return err
		}
		if _, err := unix.Getpeername(fd); err == nil {
			heard[strings.TrimSpace(greeting(fd))]++
		}
		unix.Close(fd)
	}
	fmt.Printf("heard inside %d times, outside %d times\n", heard["inside"], heard["outside"])
	return nil
}
