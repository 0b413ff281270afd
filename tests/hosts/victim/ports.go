//go:build linux

package main

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// echo ADDRESS answers everybody with what they send.
func echo(args []string) error {
	listener, err := net.Listen("tcp", args[0])
	if err != nil {
		return err
	}
	fmt.Println("serving")
	accept(listener, func(c net.Conn) { _, _ = io.Copy(c, c) })
	return nil
}

// listening lists the ports at which somebody listens in this network namespace.
func listening() ([]int, error) {
	table, err := os.ReadFile("/proc/self/net/tcp6")
	if err != nil {
		return nil, err
	}
	var ports []int
	for line := range strings.Lines(string(table)) {
		fields := strings.Fields(line)
		if len(fields) < 4 || fields[3] != "0A" { // TCP_LISTEN
			continue
		}
		port, err := strconv.ParseUint(fields[1][strings.LastIndexByte(fields[1], ':')+1:], 16, 16)
		if err != nil {
			return nil, err
		}
		ports = append(ports, int(port))
	}
	return ports, nil
}

// flood waits until the sidecar listens in this network namespace, and fills its
// queue.
func flood([]string) error {
	for begun := time.Now(); time.Since(begun) < patience; {
		ports, err := listening()
		if err != nil {
			return err
		}
		for _, port := range ports {
			for range 64 {
				fd, err := unix.Socket(unix.AF_INET6, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
				if err != nil {
					return err
				}
				_ = unix.Connect(fd, &unix.SockaddrInet6{Port: port, Addr: [16]byte{15: 1}})
			}
			fmt.Println("flooded")
			select {}
		}
	}
	return errors.New("nobody listens")
}
