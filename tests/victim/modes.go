//go:build linux

package main

import (
	"errors"
	"fmt"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	marked = 0o4755
	swaps  = 500
)

// fchmodat2 is in Linux 6.6 and newer, under this number on all architectures.
const fchmodat2 = 452

// markOpened opens a file for writing, which it may create with marks, and tries
// every way to make it a set-user-id program. It prints the ways that have
// worked. own is a file of the session's.
func markOpened(path, own string) error {
	fd, err := unix.Open(path, unix.O_WRONLY|unix.O_CREAT|unix.O_CLOEXEC, 0o6755)
	if err != nil {
		return err
	}
	link, threadLink := fmt.Sprintf("/proc/self/fd/%d", fd), fmt.Sprintf("/proc/thread-self/fd/%d", fd)
	isMarked := func() bool {
		var stat unix.Stat_t
		return unix.Fstat(fd, &stat) == nil && stat.Mode&0o7000 != 0
	}
	if isMarked() {
		fmt.Println("marked: open")
	}
	ways := []struct {
		name string
		try  func() error
	}{
		{"fchmod", func() error { return unix.Fchmod(fd, marked) }},
		{"chmod", func() error { return unix.Chmod(link, marked) }},
		{"dev", func() error { return unix.Chmod(fmt.Sprintf("/dev/fd/%d", fd), marked) }},
		{"fchmodat", func() error { return unix.Fchmodat(unix.AT_FDCWD, threadLink, marked, 0) }},
		{"fchmodat2", func() error {
			empty := [1]byte{}
			_, err := call(fchmodat2, uintptr(fd), uintptr(unsafe.Pointer(&empty[0])), marked, unix.AT_EMPTY_PATH)
			return err
		}},
		{"set-group-id", func() error { return unix.Fchmod(fd, 0o2755) }},
		{"swap", func() error { return swap(fd, own) }},
	}
	var failed error
	for _, way := range ways {
		err := way.try()
		if isMarked() {
			fmt.Println("marked:", way.name)
		}
		if !errors.Is(err, unix.ENOSYS) {
			failed = errors.Join(failed, err)
		}
		_ = unix.Fchmod(fd, 0o644)
	}
	return failed
}

// swap changes the mode of a descriptor that another thread replaces meanwhile
// by one of a file of the session's, and back.
func swap(fd int, own string) error {
	mine, err := unix.Open(own, unix.O_WRONLY|unix.O_CREAT|unix.O_CLOEXEC, 0o644)
	if err != nil {
		return err
	}
	at, err := unix.Dup(mine)
	if err != nil {
		return err
	}
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		runtime.LockOSThread()
		for {
			select {
			case <-stop:
				return
			default:
				_, _ = unix.Dup3(fd, at, 0), unix.Dup3(mine, at, 0)
			}
		}
	}()
	for range swaps {
		_ = unix.Fchmod(at, marked)
	}
	close(stop)
	<-stopped
	return nil
}
