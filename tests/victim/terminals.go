//go:build linux

package main

import (
	"fmt"
	"strconv"

	"golang.org/x/sys/unix"
)

var terminalActions = map[string]action{
	"spy":            one(spy),
	"steal-terminal": two(stealTerminal),
	"open-pty":       func([]string) error { return openPTY() },
}

// spy opens a terminal, prints that it is ready, and prints the first line that
// is typed there.
func spy(path string) error {
	fd, err := unix.Open(path, unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	fmt.Println("spying")
	line := make([]byte, 128)
	n, err := unix.Read(fd, line)
	if err != nil {
		return err
	}
	fmt.Printf("spied %q\n", line[:n])
	return nil
}

// stealTerminal takes the master of a terminal from another process, and types
// into it.
func stealTerminal(text, number string) error {
	return withDescriptor(text, number, func(fd int) error {
		_, err := unix.Write(fd, []byte("echo sto''len\n"))
		return err
	})
}

// openPTY opens a new terminal and its other side, and prints its name.
func openPTY() error {
	master, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(master)
	if err := unix.IoctlSetPointerInt(master, unix.TIOCSPTLCK, 0); err != nil {
		return err
	}
	number, err := unix.IoctlGetInt(master, unix.TIOCGPTN)
	if err != nil {
		return err
	}
	path := "/dev/pts/" + strconv.Itoa(number)
	other, err := unix.Open(path, unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	fmt.Println("opened", path)
	return unix.Close(other)
}
