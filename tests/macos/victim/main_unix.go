//go:build unix

// Victim tries what single commands of a Mac cannot.
//
//	victim wait                 wait for the end of the standard input
//	victim procargs NAME PID    print what the kernel says of a process
//	victim tiocsti              type a line end into the terminal
package main

import (
	"fmt"
	"io"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

func main() {
	if err := act(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "victim:", err)
		os.Exit(1)
	}
}

func act(args []string) error {
	switch {
	case len(args) == 1 && args[0] == "wait":
		_, err := io.Copy(io.Discard, os.Stdin)
		return err
	case len(args) == 3 && args[0] == "procargs":
		pid, err := strconv.Atoi(args[2])
		if err != nil {
			return err
		}
		all, err := procargs(args[1], pid)
		if err != nil {
			return err
		}
		_, err = os.Stdout.Write(all)
		return err
	case len(args) == 1 && args[0] == "tiocsti":
		// The kernel reads the first byte of the number alone.
		if err := unix.IoctlSetPointerInt(0, unix.TIOCSTI, '\n'); err != nil {
			return fmt.Errorf("ioctl TIOCSTI: %w", err)
		}
		return nil
	}
	return fmt.Errorf("unknown arguments %q", args)
}
