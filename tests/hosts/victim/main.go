//go:build linux

// Command victim is a world with some hosts, and what connects to them. The
// action "world" runs a command in a network namespace with servers of its own, and
// "phases" runs several in one that is there already. All other actions are for
// sessions: they print what they get, or the name of the error.
package main

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

var actions = map[string]func(args []string) error{
	"world": world, "inside": inside, "phases": phases, "lookups": lookups,
	"connect": connect, "poll": connectPolled, "interrupted": connectInterrupted, "storm": storm, "again": again,
	"unspec": unspec, "v6": connectV6, "v6only": connectV6Only, "mptcp": connectMPTCP, "fast-open": fastOpen,
	"defer": deferConnect, "passed": connectPassed, "datagram": datagram, "raw": raw, "tls": helloTLS,
	"names": manyNames, "ask": ask, "hear": hear, "halves": halves, "many": many, "relay": findRelay, "peer": peer,
	"serve": echo, "flood": flood,
	"upgrade": upgrade, "shared": connectShared, "inherited": useInherited,
	"eager": eager, "speak": speak, "crowd": crowd,
	"grab": grab, "hoard": hoard, "rounds": rounds, "leave": leave,
	"listen": listenTCP, "bind": bindTCP, "unix": unixPair, "scatter": scatter, "short": shortAddress,
	"route": sourceRoute, "device": otherDevice, "kinds": kinds, "swap": swap, "knock": knock, "query": queryUDP,
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
		fmt.Println(unix.ErrnoName(errno))
		if os.Args[1] == "world" || os.Args[1] == "inside" {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(2)
		}
	case err != nil:
		fmt.Printf("error: %v\n", err)
		fmt.Fprintf(os.Stderr, "victim %s: %v\n", os.Args[1], err)
		os.Exit(2)
	}
}
