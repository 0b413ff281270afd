package proc

import (
	"errors"
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// Process states as in <sys/proc.h>.
const (
	sstop = 4
	szomb = 5
)

// Table lists every process at one moment, except for the session ids.
func Table() ([]Entry, error) {
	procs, err := unix.SysctlKinfoProcSlice("kern.proc.all")
	if err != nil {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	return entriesOf(procs)
}

// OwnProcesses lists the processes of this user. Others are not ours to kill,
// and the kernel may not answer questions about them.
func OwnProcesses() ([]Entry, error) {
	procs, err := unix.SysctlKinfoProcSlice("kern.proc.uid", os.Geteuid())
	if err != nil {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	return entriesOf(procs)
}

func entriesOf(procs []unix.KinfoProc) ([]Entry, error) {
	var table []Entry
	for i := range procs {
		entry := entryOf(&procs[i])
		var err error
		entry.Session, err = unix.Getsid(entry.PID)
		if err != nil && !errors.Is(err, unix.ESRCH) && !errors.Is(err, unix.EPERM) { // ended since, or another user's
			return nil, fmt.Errorf("list processes: %w", err)
		}
		table = append(table, entry)
	}
	return table, nil
}

func entryOf(proc *unix.KinfoProc) Entry {
	start := proc.Proc.P_starttime
	return Entry{
		ID:     ID{PID: int(proc.Proc.P_pid), Birth: uint64(start.Sec*1e6 + int64(start.Usec))},
		Parent: int(proc.Eproc.Ppid),
		Dead:   proc.Proc.P_stat == szomb, Stopped: proc.Proc.P_stat == sstop,
	}
}

// Find reads one process's entry; ESRCH if there is none.
func Find(pid int) (Entry, error) {
	proc, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	if err != nil {
		return Entry{}, unix.ESRCH // the call finds nothing, and returns EIO
	}
	entry := entryOf(proc)
	if entry.Session, err = unix.Getsid(pid); err != nil {
		return Entry{}, unix.ESRCH
	}
	return entry, nil
}

// StartTime tells a process from others with the same number at other times. It
// is in microseconds since the epoch.
func StartTime(pid int) (string, error) {
	proc, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	if err != nil {
		return "", fmt.Errorf("read start time of process %d: %w", pid, err)
	}
	return strconv.FormatUint(entryOf(proc).Birth, 10), nil
}

// Kill kills a process if the number is still its own.
func Kill(target ID) error {
	proc, err := unix.SysctlKinfoProc("kern.proc.pid", target.PID)
	if err != nil {
		return unix.ESRCH // the call finds nothing, and returns EIO
	}
	if now := entryOf(proc); now.Birth != target.Birth || now.Dead {
		return unix.ESRCH
	}
	return unix.Kill(target.PID, unix.SIGKILL)
}
