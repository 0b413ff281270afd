package proc

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// Table lists every process that this one can see. It is not read at one
// moment.
func Table() ([]Entry, error) {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	defer dir.Close()
	var table []Entry
	var buffer [1024]byte
	for {
		names, err := dir.Readdirnames(512)
		if errors.Is(err, io.EOF) {
			return table, nil
		}
		if err != nil {
			return nil, fmt.Errorf("list processes: %w", err)
		}
		for _, name := range names {
			if name[0] < '1' || name[0] > '9' {
				continue
			}
			entry, err := readProcess(name, buffer[:])
			switch {
			case err == nil:
				table = append(table, entry)
			case errors.Is(err, fs.ErrPermission):
				// hidepid=noaccess shows only the numbers of other users' processes
			case !errors.Is(err, unix.ESRCH):
				return nil, fmt.Errorf("list processes: %w", err)
			}
		}
	}
}

// Find reads one process's entry; ESRCH if there is none.
func Find(pid int) (Entry, error) {
	var buffer [1024]byte
	return readProcess(strconv.Itoa(pid), buffer[:])
}

// readProcess reads /proc/PID/stat, which is shorter than the buffer. Plain
// system calls cost a third of os.ReadFile, and a scan reads hundreds of these
// files.
func readProcess(name string, buffer []byte) (Entry, error) {
	path := "/proc/" + name + "/stat"
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if errors.Is(err, unix.ENOENT) {
		return Entry{}, unix.ESRCH
	}
	if err != nil {
		return Entry{}, &os.PathError{Op: "open", Path: path, Err: err}
	}
	defer unix.Close(fd)
	n, err := unix.Read(fd, buffer)
	if err != nil {
		if errors.Is(err, unix.ESRCH) {
			return Entry{}, unix.ESRCH
		}
		return Entry{}, &os.PathError{Op: "read", Path: path, Err: err}
	}
	entry, ok := parseStat(buffer[:n])
	if !ok {
		return Entry{}, fmt.Errorf("read %s: unexpected content %q", path, buffer[:n])
	}
	return entry, nil
}

// parseStat reads /proc/PID/stat, see proc_pid_stat(5). The command name in
// field 2 may itself hold blanks and parentheses, so the fields are counted
// from its last ")".
func parseStat(stat []byte) (Entry, bool) {
	name, _, _ := bytes.Cut(stat, []byte(" "))
	end := bytes.LastIndexByte(stat, ')')
	if end < 0 {
		return Entry{}, false
	}
	fields := bytes.Fields(stat[end+1:]) // from field 3 on
	if len(fields) < 20 {
		return Entry{}, false
	}
	ok := true
	number := func(field []byte) int {
		n, err := strconv.Atoi(string(field))
		ok = ok && err == nil
		return n
	}
	entry := Entry{Parent: number(fields[1]), Session: number(fields[3])}
	// A process whose first thread has ended (pthread_exit(3) in main) shows as
	// a zombie while its other threads run. It is alive.
	threads := number(fields[17])
	entry.Stopped = fields[0][0] == 'T'
	entry.Runs = fields[0][0] == 'R' || fields[0][0] == 'S'
	entry.Dead = fields[0][0] == 'X' || fields[0][0] == 'Z' && threads < 2
	entry.PID, entry.Birth = number(name), uint64(number(fields[19]))
	return entry, ok
}

// StartTime tells a process from others with the same number at other times. It
// is field 22 of /proc/PID/stat, in clock ticks since boot.
func StartTime(pid int) (string, error) {
	entry, err := Find(pid)
	if err != nil {
		return "", fmt.Errorf("read start time of process %d: %w", pid, err)
	}
	return strconv.FormatUint(entry.Birth, 10), nil
}

// Kill kills a process if the number is still its own.
func Kill(target ID) error { return Signal(target, unix.SIGKILL) }

// Signal signals a process if the number is still its own. A pidfd (Linux 5.3)
// holds the process while that is checked.
func Signal(target ID, signal unix.Signal) error {
	fd, err := unix.PidfdOpen(target.PID, 0)
	if errors.Is(err, unix.ESRCH) {
		return err
	}
	held := err == nil // without a pidfd (no descriptors left, an older kernel) the check alone must do
	if held {
		defer unix.Close(fd)
	}
	now, err := Find(target.PID)
	if err != nil {
		return err
	}
	if now.Birth != target.Birth || now.Dead {
		return unix.ESRCH
	}
	if held {
		return unix.PidfdSendSignal(fd, signal, nil, 0)
	}
	return unix.Kill(target.PID, signal)
}
