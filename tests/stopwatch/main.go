//go:build linux

// Command stopwatch measures how long ordinary system calls take. It prints a
// line for each: the name, and nanoseconds. Its argument is a directory to work
// in. A second argument "no-sockets" leaves out connecting, for sandboxes that
// refuse it. "stopwatch network ADDRESS BYTES" measures connections to a server
// that tests/bench runs, and a download of so many bytes.
package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// A figure is the minimum of several batches: other work on the machine makes a
// batch longer, never shorter.
const (
	batches   = 12
	batchTime = 3 * time.Millisecond
)

func main() {
	if len(os.Args) == 4 && os.Args[1] == "network" {
		bytes, err := strconv.ParseInt(os.Args[3], 10, 64)
		if err == nil {
			err = network(os.Args[2], bytes)
		}
		if err != nil {
			fmt.Fprintf(os.Stderr, "stopwatch: %v\n", err)
			os.Exit(1)
		}
		return
	}
	without := len(os.Args) == 3 && os.Args[2] == "no-sockets"
	if len(os.Args) != 2 && !without {
		fmt.Fprintln(os.Stderr, "stopwatch: expected a directory")
		os.Exit(2)
	}
	if err := run(os.Args[1], !without); err != nil {
		fmt.Fprintf(os.Stderr, "stopwatch: %v\n", err)
		os.Exit(1)
	}
}

// action is repeated in batches.
type action struct {
	name string
	do   func() error
}

func run(dir string, sockets bool) error {
	actions, err := actionsIn(dir, sockets)
	if err != nil {
		return err
	}
	for _, a := range actions {
		least := time.Duration(1<<63 - 1)
		for range batches {
			took, err := batch(a.do)
			if err != nil {
				return fmt.Errorf("%s: %w", a.name, err)
			}
			least = min(least, took)
		}
		fmt.Printf("%s %d\n", a.name, least.Nanoseconds())
	}
	return nil
}

// batch is the time of one call, measured over a batch that is long enough for
// the clock.
func batch(do func() error) (time.Duration, error) {
	count := 0
	begun := time.Now()
	for time.Since(begun) < batchTime {
		for range 8 {
			if err := do(); err != nil {
				return 0, err
			}
		}
		count += 8
	}
	return time.Since(begun) / time.Duration(count), nil
}

func actionsIn(dir string, sockets bool) ([]action, error) {
	file, other := filepath.Join(dir, "file"), filepath.Join(dir, "other")
	if err := os.WriteFile(file, make([]byte, 4096), 0o600); err != nil {
		return nil, err
	}
	fd, err := unix.Open(file, unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	page := make([]byte, 4096)
	actions := []action{
		{"getpid", func() error { unix.Getpid(); return nil }},
		{"read", func() error { _, err := unix.Pread(fd, page, 0); return err }},
		{"write", func() error { _, err := unix.Pwrite(fd, page, 0); return err }},
		{"stat", func() error { var stat unix.Stat_t; return unix.Stat(file, &stat) }},
		{"open", func() error {
			fd, err := unix.Open(file, unix.O_RDONLY|unix.O_CLOEXEC, 0)
			return errors.Join(err, unix.Close(fd))
		}},
		{"rename", func() error { return errors.Join(unix.Rename(file, other), unix.Rename(other, file)) }},
		{"ioctl", func() error { _, err := unix.IoctlGetInt(fd, unix.TIOCINQ); return err }},
		{"exec", func() error { return exec.Command("/bin/true").Run() }},
	}
	if !sockets {
		return actions, nil
	}
	connect, err := connector("unix", filepath.Join(dir, "s"))
	if err != nil {
		return nil, err
	}
	actions = append(actions, action{"connect-unix", connect})
	if connect, err = connector("tcp", "127.0.0.1:0"); err != nil {
		return nil, err
	}
	return append(actions, action{"connect-tcp", connect}), nil
}

// connector starts a server in this process, and connects to it.
func connector(network, address string) (func() error, error) {
	server, err := net.Listen(network, address)
	if err != nil {
		return nil, err
	}
	go func() {
		for {
			conn, err := server.Accept()
			if err != nil {
				return
			}
			conn.Close()
		}
	}()
	to := server.Addr().String()
	return func() error {
		conn, err := net.Dial(network, to)
		if err != nil {
			return err
		}
		if tcp, ok := conn.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0) // or ports would run out
		}
		return conn.Close()
	}, nil
}
