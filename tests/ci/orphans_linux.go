package main

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// adoptOrphans makes this process the parent of descendants whose parent ends.
func adoptOrphans() error { return unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) }

// endWithParent has a child killed when the thread that started it ends.
func endWithParent() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
