//go:build linux

package main

import (
	"fmt"
	"strconv"

	"golang.org/x/sys/unix"
)

var socketActs = map[string]act{
	"connect":          one(func(path string) error { return connect(&unix.SockaddrUnix{Name: path}) }),
	"connect-abstract": one(func(name string) error { return connect(&unix.SockaddrUnix{Name: "@" + name}) }),
	"send-abstract":    two(send),
	"connect-tcp":      one(connectTCP),
}

func connect(to unix.Sockaddr) error {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return unix.Connect(fd, to)
}

// send sends a datagram without connecting.
func send(name, text string) error {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return unix.Sendto(fd, []byte(text), 0, &unix.SockaddrUnix{Name: "@" + name})
}

// connectTCP connects to a port of this machine.
func connectTCP(port string) error {
	number, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return fmt.Errorf("%w: %w", errMisuse, err)
	}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return unix.Connect(fd, &unix.SockaddrInet4{Port: int(number), Addr: [4]byte{127, 0, 0, 1}})
}
