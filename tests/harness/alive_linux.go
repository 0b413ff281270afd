package harness

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// Alive reports whether a process with this pid exists and is not a zombie.
func Alive(pid int) bool {
	now := state(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if now == 0 { // it may be hidden (hidepid, proc(5)); one that has only to be waited for is not
		err := unix.Kill(pid, 0)
		return err == nil || errors.Is(err, unix.EPERM)
	}
	return now != 'Z' && now != 'X'
}

// stopped reports whether each thread of a process is stopped. No thread is
// started meanwhile: clone(2) fails while a stop is pending.
func stopped(pid int) bool {
	threads, _ := filepath.Glob(filepath.Join("/proc", strconv.Itoa(pid), "task/*/stat"))
	found := false
	for _, thread := range threads {
		switch state(thread) {
		case 'T':
			found = true
		case 0, 'Z', 'X': // it has ended
		default:
			return false
		}
	}
	return found
}

// state is the third field of a stat file (proc(5)): a process's or a thread's
// state; 0: it has ended.
func state(path string) byte {
	stat, err := os.ReadFile(path)
	if err != nil {
		return 0
	}
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:]) // the name before it may hold anything
	if len(fields) == 0 {
		return 0
	}
	return fields[0][0]
}
