//go:build linux

// Command victim tries to reach the sockets of outside processes. Its arguments
// are one action and that action's own. It prints what the server sends, or
// "refused: " and the error's name.
package main

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

var actions = map[string]func(args []string) error{
	"hear":     hear,
	"datagram": sendAlone,
	"pair":     sendFromPair,
	"flip":     flip,
	"swap":     swap,
	"listener": listenToItself,
	"again":    hearAgain,
	"clock":    clock,
}

func main() {
	action, known := actions[os.Args[1]]
	if !known {
		fmt.Println("misused: no such action")
		os.Exit(2)
	}
	err := action(os.Args[2:])
	var errno unix.Errno
	switch {
	case errors.As(err, &errno):
		fmt.Printf("refused: %s\n", unix.ErrnoName(errno))
		os.Exit(1)
	case err != nil:
		fmt.Printf("misused: %v\n", err)
		os.Exit(2)
	}
}
