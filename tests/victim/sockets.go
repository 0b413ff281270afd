//go:build linux

package main

import (
	"fmt"
	"strconv"

	"golang.org/x/sys/unix"
)

var socketActions = map[string]action{
	"connect":          one(func(path string) error { return connect(&unix.SockaddrUnix{Name: path}) }),
	"connect-abstract": one(func(name string) error { return connect(&unix.SockaddrUnix{Name: "@" + name}) }),
	"send-abstract":    two(send),
	"connect-tcp":      one(connectTCP),
	"connect-mptcp": two(func(port, text string) error {
		return sendText(port, text, unix.SOCK_STREAM, unix.IPPROTO_MPTCP)
	}),
	"send-udp":  two(func(port, text string) error { return sendText(port, text, unix.SOCK_DGRAM, 0) }),
	"fast-open": two(fastOpen),
	"send-path": two(func(path, text string) error { return sendTo(path, text) }),
	"socket":    makeSocket,
}

func connect(to unix.Sockaddr) error {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return unix.Connect(fd, to)
}

// send sends a datagram to an abstract socket.
func send(name, text string) error { return sendTo("@"+name, text) }

// sendTo sends a datagram without connecting.
func sendTo(name, text string) error {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return unix.Sendto(fd, []byte(text), 0, &unix.SockaddrUnix{Name: name})
}

// connectTCP connects to a port of this machine.
func connectTCP(port string) error { return sendText(port, "", unix.SOCK_STREAM, 0) }

// address is a port of this machine.
func address(port string) (unix.Sockaddr, error) {
	number, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errMisuse, err)
	}
	return &unix.SockaddrInet4{Port: int(number), Addr: [4]byte{127, 0, 0, 1}}, nil
}

// sendText connects to a port of this machine and sends a text.
func sendText(port, text string, kind, protocol int) error {
	to, err := address(port)
	if err != nil {
		return err
	}
	fd, err := unix.Socket(unix.AF_INET, kind|unix.SOCK_CLOEXEC, protocol)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if err := unix.Connect(fd, to); err != nil || text == "" {
		return err
	}
	_, err = unix.Write(fd, []byte(text))
	return err
}

// fastOpen connects by sending.
func fastOpen(port, text string) error {
	to, err := address(port)
	if err != nil {
		return err
	}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return unix.Sendto(fd, []byte(text), unix.MSG_FASTOPEN, to)
}

// makeSocket makes a socket from three numbers: domain, type, protocol.
func makeSocket(args []string) error {
	var numbers [3]int
	for i, arg := range args {
		var err error
		if numbers[i%3], err = strconv.Atoi(arg); err != nil {
			return err
		}
	}
	fd, err := unix.Socket(numbers[0], numbers[1]|unix.SOCK_CLOEXEC, numbers[2])
	return give(uintptr(fd), err)
}
