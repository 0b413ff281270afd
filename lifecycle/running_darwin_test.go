package lifecycle

import "golang.org/x/sys/unix"

// running reports whether a process has this pid and is no zombie.
func running(pid int) bool {
	proc, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	return err == nil && int(proc.Proc.P_pid) == pid && proc.Proc.P_stat != szomb
}

// roles are none: there are no subreapers here.
var roles = map[string]func() int{}
