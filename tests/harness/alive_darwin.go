package harness

import "golang.org/x/sys/unix"

// Alive reports whether a process with this pid exists and is not a zombie.
func Alive(pid int) bool {
	const zombie = 5 // SZOMB in sys/proc.h
	proc, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	return err == nil && int(proc.Proc.P_pid) == pid && proc.Proc.P_stat != zombie
}

// stopped reports whether a process is stopped.
func stopped(pid int) bool {
	const stopped = 4 // SSTOP in sys/proc.h
	proc, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	return err == nil && int(proc.Proc.P_pid) == pid && proc.Proc.P_stat == stopped
}
