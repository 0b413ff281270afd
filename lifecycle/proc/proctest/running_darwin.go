package proctest

import "golang.org/x/sys/unix"

// Running reports whether a process has this id and is no zombie.
func Running(pid int) bool {
	const zombie = 5 // SZOMB in <sys/proc.h>
	proc, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	return err == nil && int(proc.Proc.P_pid) == pid && proc.Proc.P_stat != zombie
}
