//go:build linux

package main

import (
	"fmt"
	"os"
	"strconv"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Actions that make other processes slower, or wait. Each is one that a user
// may do to all of the own processes.
var priorityActions = map[string]action{
	"lease":           one(lease),
	"clone-parent":    cloneParent,
	"affinity":        one(onPID(pinToItsOwn)),
	"scheduler":       one(onPID(batch)),
	"parameters":      one(onPID(sameParameters)),
	"attributes":      one(onPID(batchByAttributes)),
	"priority":        one(onPID(func(pid int) error { return unix.Setpriority(unix.PRIO_PROCESS, pid, slower) })),
	"priority-group":  one(onPID(func(pid int) error { return unix.Setpriority(unix.PRIO_PGRP, pid, slower) })),
	"io":              one(onPID(func(pid int) error { return setIO(ioprioProcess, pid) })),
	"io-group":        one(onPID(func(pid int) error { return setIO(ioprioGroup, pid) })),
	"inotify":         one(takeInotify),
	"inotify-watches": two(takeWatches),
}

// slower is the highest nice value: whoever tests at a low priority can set it too.
const slower = 19

// From linux/ioprio.h: whose priority is meant, and the lowest of the class
// that every process has.
const (
	ioprioProcess, ioprioGroup = 1, 2
	ioprioLowest               = 2<<13 | 7
)

// lease takes a lease on a file that is opened for reading, reports it, and
// keeps it until it is killed. Every process that opens the file then waits.
func lease(path string) error {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_SETLEASE, unix.F_WRLCK); err != nil {
		return err
	}
	fmt.Println("leased")
	time.Sleep(time.Hour) // an empty select would end a program without other goroutines
	return nil
}

// cloneParent starts a process as a sibling, and prints whose child it is.
func cloneParent([]string) error {
	read, write, err := os.Pipe()
	if err != nil {
		return err
	}
	defer read.Close()
	_, err = syscall.ForkExec("/bin/sh", []string{"sh", "-c", "echo $PPID"}, &syscall.ProcAttr{
		Files: []uintptr{0, write.Fd(), 2}, Sys: &syscall.SysProcAttr{Cloneflags: unix.CLONE_PARENT},
	})
	write.Close()
	if err != nil {
		return err
	}
	var parent int
	if _, err := fmt.Fscan(read, &parent); err != nil {
		return fmt.Errorf("%w: %w", errMisuse, err)
	}
	if parent != os.Getppid() {
		return fmt.Errorf("%w: the child of %d is %d's", errMisuse, os.Getpid(), parent)
	}
	fmt.Println("adopted out")
	return nil
}

// pinToItsOwn sets the processors of a process to those that it has already.
func pinToItsOwn(pid int) error {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(pid, &set); err != nil {
		return fmt.Errorf("%w: %w", errMisuse, err)
	}
	return unix.SchedSetaffinity(pid, &set)
}

func batch(pid int) error {
	var parameters int32
	_, err := call(unix.SYS_SCHED_SETSCHEDULER, uintptr(pid), unix.SCHED_BATCH, uintptr(unsafe.Pointer(&parameters)))
	return err
}

func sameParameters(pid int) error {
	var parameters int32
	_, err := call(unix.SYS_SCHED_SETPARAM, uintptr(pid), uintptr(unsafe.Pointer(&parameters)))
	return err
}

func batchByAttributes(pid int) error {
	return unix.SchedSetAttr(pid, &unix.SchedAttr{
		Size: unix.SizeofSchedAttr, Policy: unix.SCHED_BATCH, Nice: slower,
	}, 0)
}

func setIO(which, who int) error {
	_, err := call(unix.SYS_IOPRIO_SET, uintptr(which), uintptr(who), ioprioLowest)
	return err
}

// takeInotify makes instances of inotify until it gets no more, prints how
// many, and keeps them until it is killed.
func takeInotify(most string) error {
	limit, err := strconv.Atoi(most)
	if err != nil {
		return fmt.Errorf("%w: %w", errMisuse, err)
	}
	count := 0
	for ; count < limit; count++ {
		if _, err = unix.InotifyInit1(unix.IN_CLOEXEC); err != nil {
			break
		}
	}
	fmt.Printf("took %d (%v)\n", count, err)
	time.Sleep(time.Hour) // an empty select would end a program without other goroutines
	return nil
}

// takeWatches watches files that it makes in a directory until it gets no more,
// prints how many, and keeps the watches until it is killed.
func takeWatches(dir, most string) error {
	limit, err := strconv.Atoi(most)
	if err != nil {
		return fmt.Errorf("%w: %w", errMisuse, err)
	}
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC)
	if err != nil {
		return err
	}
	count := 0
	for ; count < limit; count++ {
		name := fmt.Sprintf("%s/%d", dir, count)
		if err := os.WriteFile(name, nil, 0o600); err != nil {
			return fmt.Errorf("%w: %w", errMisuse, err)
		}
		if _, err = unix.InotifyAddWatch(fd, name, unix.IN_MODIFY); err != nil {
			break
		}
	}
	fmt.Printf("took %d (%v)\n", count, err)
	time.Sleep(time.Hour) // an empty select would end a program without other goroutines
	return nil
}
