package lifecycle

import (
	"errors"
	"fmt"
	"strconv"

	"golang.org/x/sys/unix"
)

// Process states as in <sys/proc.h>.
const (
	sstop = 4
	szomb = 5
)

// processTable lists every process, as it was at one moment but for the session
// ids.
func processTable() ([]processEntry, error) {
	procs, err := unix.SysctlKinfoProcSlice("kern.proc.all")
	if err != nil {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	return entriesOf(procs)
}

func entriesOf(procs []unix.KinfoProc) ([]processEntry, error) {
	var table []processEntry
	for i := range procs {
		entry := entryOf(&procs[i])
		var err error
		entry.session, err = unix.Getsid(entry.pid)
		if err != nil && !errors.Is(err, unix.ESRCH) && !errors.Is(err, unix.EPERM) { // ended since, or another user's
			return nil, fmt.Errorf("list processes: %w", err)
		}
		table = append(table, entry)
	}
	return table, nil
}

func entryOf(proc *unix.KinfoProc) processEntry {
	start := proc.Proc.P_starttime
	return processEntry{
		processID: processID{pid: int(proc.Proc.P_pid), birth: uint64(start.Sec*1e6 + int64(start.Usec))},
		parent:    int(proc.Eproc.Ppid),
		dead:      proc.Proc.P_stat == szomb, stopped: proc.Proc.P_stat == sstop,
	}
}

// startTime tells a process from others that have its number at other times:
// its start, in microseconds since the epoch.
func startTime(pid int) (string, error) {
	proc, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	if err != nil {
		return "", fmt.Errorf("read start time of process %d: %w", pid, err)
	}
	return strconv.FormatUint(entryOf(proc).birth, 10), nil
}

// killExactly kills a process that is what it was when it was looked at.
func killExactly(target processID) error {
	proc, err := unix.SysctlKinfoProc("kern.proc.pid", target.pid)
	if err != nil {
		return unix.ESRCH // the call finds nothing, and says EIO
	}
	if now := entryOf(proc); now.birth != target.birth || now.dead {
		return unix.ESRCH
	}
	return unix.Kill(target.pid, unix.SIGKILL)
}
