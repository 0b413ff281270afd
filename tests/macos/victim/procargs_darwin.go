package main

import "golang.org/x/sys/unix"

// procargs asks kern.procargs or kern.procargs2, which hold the arguments and the
// environment of a process.
func procargs(name string, pid int) ([]byte, error) { return unix.SysctlRaw(name, pid) }
