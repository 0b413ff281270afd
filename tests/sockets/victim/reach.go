//go:build linux

package main

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// hear connects to a socket and prints the server's greeting; "@" begins an
// abstract name.
func hear(args []string) error {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if err := unix.Connect(fd, &unix.SockaddrUnix{Name: args[0]}); err != nil {
		return err
	}
	fmt.Println(greeting(fd))
	return nil
}

// greeting reads the first line of a server; empty if the server ends instead.
func greeting(fd int) string {
	buffer := make([]byte, 64)
	n, _ := unix.Read(fd, buffer)
	return string(buffer[:max(n, 0)])
}

// hearAgain hears, waits for a line of input, and hears again, whatever the
// first result.
func hearAgain(args []string) error {
	report := func() {
		var errno unix.Errno
		if errors.As(hear(args), &errno) {
			fmt.Printf("refused: %s\n", unix.ErrnoName(errno))
		}
	}
	report()
	fmt.Println("ready")
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		report()
	}
	return nil
}

func sendAlone(args []string) error {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return unix.Sendto(fd, []byte("order"), 0, &unix.SockaddrUnix{Name: args[0]})
}

// sendFromPair sends from one end of a pair to an address other than the other
// end.
func sendFromPair(args []string) error {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fds[0])
	defer unix.Close(fds[1])
	return unix.Sendto(fds[0], []byte("order"), 0, &unix.SockaddrUnix{Name: args[0]})
}

// listenToItself installs a filter with a listener of its own.
func listenToItself([]string) error {
	runtime.LockOSThread() // no_new_privs belongs to the thread, and the filter needs it
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	allow := unix.SockFilter{Code: unix.BPF_RET, K: 0x7fff0000} // SECCOMP_RET_ALLOW
	program := unix.SockFprog{Len: 1, Filter: &allow}
	_, _, errno := unix.RawSyscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER,
		unix.SECCOMP_FILTER_FLAG_NEW_LISTENER, uintptr(unsafe.Pointer(&program)))
	if errno != 0 {
		return errno
	}
	fmt.Println("listening")
	return nil
}
