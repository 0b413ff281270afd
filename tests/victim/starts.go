//go:build linux

package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// startActions hold up what another process starts.
var startActions = map[string]action{"stop-starts": two(stopStarts)}

// stopStarts stops the next child of a process that has not executed its program
// yet, and makes a file then. It needs several tries.
func stopStarts(parent, caught string) error {
	name, err := os.ReadFile("/proc/" + parent + "/comm")
	if err != nil {
		return err
	}
	last, err := lastPID()
	if err != nil {
		return err
	}
	for {
		now, err := lastPID()
		if err != nil {
			return err
		}
		for pid := last + 1; pid <= now; pid++ {
			if stopBefore(pid, parent, string(name)) {
				return os.WriteFile(caught, []byte(strconv.Itoa(pid)), 0o600)
			}
		}
		last = now
	}
}

// lastPID is the process id that was given last.
func lastPID() (int, error) {
	load, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return 0, err
	}
	fields := strings.Fields(string(load))
	if len(fields) == 0 {
		return 0, fmt.Errorf("%w: /proc/loadavg is empty", errMisuse)
	}
	return strconv.Atoi(fields[len(fields)-1])
}

// stopBefore stops a child of a process, and reports whether that still has the
// parent's name. Otherwise it has executed its program, and goes on.
func stopBefore(pid int, parent, name string) bool {
	if _, err := os.Stat(fmt.Sprintf("/proc/self/task/%d", pid)); err == nil {
		return false // a thread of this process
	}
	if _, of := stateOf(pid); of != parent || unix.Kill(pid, unix.SIGSTOP) != nil {
		return false
	}
	for { // a call such as execve(2) ends before
		state, _ := stateOf(pid)
		if state == "T" {
			break
		}
		if state == "" || state == "Z" || state == "X" {
			return false
		}
	}
	if now, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid)); err == nil && string(now) == name {
		return true
	}
	_ = unix.Kill(pid, unix.SIGCONT)
	return false
}

// stateOf is the state of a process, and its parent; "" if there is none.
func stateOf(pid int) (state, parent string) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return "", ""
	}
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	if len(fields) < 2 {
		return "", ""
	}
	return fields[0], fields[1]
}
