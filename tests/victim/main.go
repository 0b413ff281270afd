//go:build linux

package main

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"

	"golang.org/x/sys/unix"
)

// action does one thing with its arguments.
type action func(args []string) error

// actions holds every action by name.
var actions = map[string]action{}

func register(more map[string]action) { maps.Copy(actions, more) }

// errMisuse marks an error that no test may take for a refusal by the kernel.
var errMisuse = errors.New("victim misused")

// errAnswer marks an error of the kernel that is an answer whatever its number.
// Without it ENOSYS and EINVAL count as mistakes of the test.
var errAnswer = errors.New("answer of the kernel")

func main() {
	register(fileActions)
	register(linkActions)
	register(processActions)
	register(detachActions)
	register(chainActions)
	register(privilegeActions)
	register(socketActions)
	register(addressActions)
	register(selfActions)
	register(terminalActions)
	register(ipcActions)
	register(kernelActions)
	register(priorityActions)
	register(stormActions)
	register(startActions)
	register(changeActions)
	for step := range steps(os.Args[1:]) {
		do, known := actions[step[0]]
		if !known {
			fmt.Printf("misused: no action %q\n", step[0])
			os.Exit(2)
		}
		err := do(step[1:])
		var errno unix.Errno
		switch {
		case err == nil:
		case errors.As(err, &errno) && (errors.Is(err, errAnswer) || errno != unix.ENOSYS && errno != unix.EINVAL) &&
			!errors.Is(err, errMisuse):
			fmt.Printf("refused: %s: %s\n", step[0], unix.ErrnoName(errno))
			os.Exit(1)
		default:
			fmt.Printf("misused: %s: %v\n", step[0], err)
			os.Exit(2)
		}
	}
}

// steps splits the arguments at "then".
func steps(args []string) func(yield func([]string) bool) {
	return func(yield func([]string) bool) {
		for len(args) > 0 {
			end := slices.Index(args, "then")
			if end < 0 {
				end = len(args)
			}
			if end > 0 && !yield(args[:end]) {
				return
			}
			args = args[min(end+1, len(args)):]
		}
	}
}

// one makes an action of a function of one argument.
func one(do func(string) error) action {
	return func(args []string) error {
		if len(args) != 1 {
			return fmt.Errorf("%w: 1 argument wanted, %d given", errMisuse, len(args))
		}
		return do(args[0])
	}
}

// two makes an action of a function of two arguments.
func two(do func(a, b string) error) action {
	return func(args []string) error {
		if len(args) != 2 {
			return fmt.Errorf("%w: 2 arguments wanted, %d given", errMisuse, len(args))
		}
		return do(args[0], args[1])
	}
}
