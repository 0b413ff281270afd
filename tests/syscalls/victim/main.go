//go:build linux

// Command victim makes system calls that a sandbox must refuse, and prints how
// the kernel answers.
//
// Each argument is one action: "NAME=NUMBER,ARG,ARG…" makes a system call with
// numbers as arguments, "NAME=type,TEXT" types into the terminal that is
// standard input, "NAME=into,DIR" starts a process in another cgroup. For each
// it prints a line: the name, and "ok" or the error's name.
package main

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

func main() {
	for _, argument := range os.Args[1:] {
		name, action, _ := strings.Cut(argument, "=")
		err := do(strings.Split(action, ","))
		var errno unix.Errno
		switch {
		case err == nil:
			fmt.Printf("%s ok\n", name)
		case !errors.As(err, &errno):
			fmt.Printf("%s misused: %v\n", name, err)
			os.Exit(2)
		case unix.ErrnoName(errno) == "":
			fmt.Printf("%s errno %d\n", name, int(errno))
		default:
			fmt.Printf("%s %s\n", name, unix.ErrnoName(errno))
		}
	}
}

func do(action []string) error {
	switch {
	case action[0] == "type" && len(action) == 2:
		return typeIn(action[1])
	case action[0] == "into" && len(action) == 2:
		return startInto(action[1])
	}
	var numbers [7]uintptr
	if len(action) > len(numbers) {
		return fmt.Errorf("%d numbers", len(action))
	}
	for i, text := range action {
		number, err := strconv.ParseUint(text, 0, 64)
		if err != nil {
			return err
		}
		numbers[i] = uintptr(number)
	}
	// A successful call may leave a descriptor, which is closed when the
	// process ends.
	_, _, errno := unix.RawSyscall6(numbers[0], numbers[1], numbers[2], numbers[3], numbers[4], numbers[5], numbers[6])
	if errno != 0 {
		return errno
	}
	return nil
}
