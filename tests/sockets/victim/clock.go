//go:build linux

package main

import (
	"fmt"
	"net"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// clock measures a connection to a server of its own, and a call that no
// supervisor decides. It prints "NAME NANOSECONDS" for each: the median, which
// other programs on the machine disturb least.
func clock(args []string) error {
	if err := serve(args[0]); err != nil {
		return err
	}
	local, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return err
	}
	go func() {
		for {
			conn, err := local.Accept()
			if err != nil {
				return
			}
			conn.Close()
		}
	}()
	port := local.Addr().(*net.TCPAddr).Port
	dial := func(family int, to unix.Sockaddr) (time.Duration, error) {
		fd, err := unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return 0, err
		}
		defer unix.Close(fd)
		begun := time.Now()
		err = unix.Connect(fd, to)
		return time.Since(begun), err
	}
	for _, measured := range []struct {
		name string
		do   func() (time.Duration, error)
	}{
		{"unix", func() (time.Duration, error) { return dial(unix.AF_UNIX, &unix.SockaddrUnix{Name: args[0]}) }},
		{"tcp", func() (time.Duration, error) {
			return dial(unix.AF_INET, &unix.SockaddrInet4{Port: port, Addr: [4]byte{127, 0, 0, 1}})
		}},
		{"getppid", func() (time.Duration, error) {
			begun := time.Now()
			for range 100 {
				unix.Getppid()
			}
			return time.Since(begun) / 100, nil
		}},
	} {
		times := make([]time.Duration, 1000)
		for i := range times {
			if times[i], err = measured.do(); err != nil {
				return err
			}
		}
		slices.Sort(times)
		fmt.Printf("%s %d\n", measured.name, times[len(times)/2].Nanoseconds())
	}
	return nil
}
