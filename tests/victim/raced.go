//go:build linux

package main

import (
	"errors"
	"fmt"
	"runtime"
	"strconv"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// createRaced creates a file by open(2) while another thread changes the last
// letter of the path in memory to another and back, for some milliseconds at most.
// Whoever reads the path before the kernel may read another name.
func createRaced(path, milliseconds string) error {
	limit, err := strconv.Atoi(milliseconds)
	if err != nil {
		return fmt.Errorf("%w: %w", errMisuse, err)
	}
	text := append([]byte(path), 0)
	// The last four bytes of the text, as one number that is written at once.
	aligned := make([]byte, len(text)+8)
	start := (4 - (int(uintptr(unsafe.Pointer(&aligned[0])))+len(text)-5)%4) % 4
	text = aligned[start : start+copy(aligned[start:], text)]
	last := (*uint32)(unsafe.Pointer(&text[len(text)-5]))
	real := atomic.LoadUint32(last)
	text[len(text)-2] ^= 1
	other := atomic.LoadUint32(last)
	done := make(chan struct{})
	go func() {
		runtime.LockOSThread()
		for {
			select {
			case <-done:
				return
			default:
			}
			for range 100 {
				atomic.StoreUint32(last, other)
				atomic.StoreUint32(last, real)
			}
		}
	}()
	defer close(done)
	tries := 0
	for end := time.Now().Add(time.Duration(limit) * time.Millisecond); time.Now().Before(end); tries++ {
		fd, _, errno := unix.Syscall6(unix.SYS_OPENAT, ^uintptr(99), // AT_FDCWD
			uintptr(unsafe.Pointer(&text[0])), unix.O_CREAT|unix.O_WRONLY|unix.O_CLOEXEC, 0o600, 0, 0)
		if errno == 0 {
			_, _ = unix.Write(int(fd), []byte("evil"))
			unix.Close(int(fd))
		}
		var stat unix.Stat_t
		if unix.Stat(path, &stat) == nil {
			fmt.Printf("won after %d tries\n", tries+1)
			return nil
		}
	}
	fmt.Printf("lost %d tries\n", tries)
	return errors.Join(unix.EACCES, errAnswer)
}
