//go:build linux

package main

import (
	"fmt"
	"net/netip"
	"path/filepath"
	"strconv"
	"unsafe"

	"golang.org/x/sys/unix"
)

// addressActions use addresses of the internet, written ADDRESS:PORT.
var addressActions = map[string]action{
	"connect-to": one(func(to string) error { return withUDP(to, unix.Connect) }),
	"bind-to":    one(func(to string) error { return withUDP(to, unix.Bind) }),
	"send-to": one(func(to string) error {
		return withUDP(to, func(fd int, to unix.Sockaddr) error { return unix.Sendto(fd, []byte("x"), 0, to) })
	}),
	// a path, and how often it is opened for writing
	"open-often": two(func(path, times string) error {
		return often(times, func(int) error { return openWrite(path) })
	}),
	// the same for reading, with the path from the command line, as cat does
	"read-often": two(func(path, times string) error {
		return often(times, func(int) error { return openNamed(path) })
	}),
	// a directory, and how many different ones are made in it
	"make-many": two(func(dir, times string) error {
		return often(times, func(i int) error { return unix.Mkdir(filepath.Join(dir, strconv.Itoa(i)), 0o700) })
	}),
}

// withUDP does something with a datagram socket, for which the kernel looks up
// the route at once.
func withUDP(to string, do func(int, unix.Sockaddr) error) error {
	address, err := netip.ParseAddrPort(to)
	if err != nil {
		return fmt.Errorf("%w: %w", errMisuse, err)
	}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return do(fd, &unix.SockaddrInet4{Port: int(address.Port()), Addr: address.Addr().As4()})
}

func openWrite(path string) error {
	fd, err := unix.Open(path, unix.O_WRONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	return unix.Close(fd)
}

// openNamed opens the path that is an argument of the program, without copying
// it. The kernel has put it in memory with a NUL behind it.
func openNamed(argument string) error {
	here := unix.AT_FDCWD
	fd, _, errno := unix.Syscall6(unix.SYS_OPENAT, uintptr(here), uintptr(unsafe.Pointer(unsafe.StringData(argument))),
		unix.O_RDONLY, 0, 0, 0)
	if errno != 0 {
		return errno
	}
	return unix.Close(int(fd))
}

// often repeats an attempt, and returns the last result.
func often(times string, do func(int) error) error {
	n, err := strconv.Atoi(times)
	if err != nil || n < 1 {
		return fmt.Errorf("%w: %q times", errMisuse, times)
	}
	for i := range n {
		err = do(i)
	}
	return err
}
