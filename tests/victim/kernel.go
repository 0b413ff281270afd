//go:build linux

package main

import (
	"encoding/binary"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Calls that reach deep into the kernel. Each action fails, or changes nothing
// and is undone at once.
var kernelActions = map[string]action{
	"io-uring": ring,
	"keyring":  addKey,
	// 1: faults of user mode only
	"userfaultfd": func([]string) error { return give(call(unix.SYS_USERFAULTFD, unix.O_CLOEXEC|1)) },
	"bpf":         loadBPF,
	"perf":        one(onPID(observe)),
	"clock":       turnClock,
	"type":        one(typeIn),
	"limit-other": one(onPID(limitOther)),
	"by-handle":   one(openByHandle),
}

// give closes a descriptor.
func give(fd uintptr, err error) error {
	if err != nil {
		return err
	}
	return unix.Close(int(fd))
}

func ring([]string) error {
	var parameters [120]byte // struct io_uring_params
	return give(call(unix.SYS_IO_URING_SETUP, 1, uintptr(unsafe.Pointer(&parameters[0]))))
}

func addKey([]string) error {
	id, err := unix.AddKey("user", "sidecar-attack", []byte("x"), unix.KEY_SPEC_USER_KEYRING)
	if err != nil {
		return err
	}
	_, err = unix.KeyctlInt(unix.KEYCTL_UNLINK, id, unix.KEY_SPEC_USER_KEYRING, 0, 0)
	return err
}

// loadBPF makes a map (BPF_MAP_TYPE_ARRAY), which is the beginning of every
// program.
func loadBPF([]string) error {
	attributes := make([]byte, 128)
	for i, word := range []uint32{2, 4, 4, 1} { // type, sizes of key and value, entries
		binary.NativeEndian.PutUint32(attributes[4*i:], word)
	}
	return give(call(unix.SYS_BPF, unix.BPF_MAP_CREATE, uintptr(unsafe.Pointer(&attributes[0])),
		uintptr(len(attributes))))
}

// observe counts the page faults of another process.
func observe(pid int) error {
	attributes := unix.PerfEventAttr{Type: unix.PERF_TYPE_SOFTWARE, Config: unix.PERF_COUNT_SW_PAGE_FAULTS}
	attributes.Size = uint32(unsafe.Sizeof(attributes))
	fd, err := unix.PerfEventOpen(&attributes, pid, -1, -1, unix.PERF_FLAG_FD_CLOEXEC)
	return give(uintptr(fd), err)
}

// turnClock changes the clock by nothing (ADJ_SETOFFSET with an offset of
// zero).
func turnClock([]string) error {
	const setOffset = 0x0100
	_, err := unix.ClockAdjtime(unix.CLOCK_REALTIME, &unix.Timex{Modes: setOffset})
	return err
}

// typeIn puts a text into the input of the terminal, as if the user had typed
// it.
func typeIn(text string) error {
	for _, key := range []byte(text) {
		if _, err := call(unix.SYS_IOCTL, 0, unix.TIOCSTI, uintptr(unsafe.Pointer(&key))); err != nil {
			return err
		}
	}
	return nil
}

// limitOther sets another process's limit of processor time to zero, for which
// the kernel kills it.
func limitOther(pid int) error {
	return unix.Prlimit(pid, unix.RLIMIT_CPU, &unix.Rlimit{}, nil)
}

// openByHandle reads a file by its handle, which needs no right on the
// directories above it.
func openByHandle(path string) error {
	handle, _, err := unix.NameToHandleAt(unix.AT_FDCWD, path, 0)
	if err != nil {
		return err
	}
	// The working directory stands for the file system, on which the file must
	// be.
	fd, err := unix.OpenByHandleAt(unix.AT_FDCWD, handle, unix.O_RDONLY|unix.O_CLOEXEC)
	if err != nil {
		return err
	}
	return drain(fd)
}
