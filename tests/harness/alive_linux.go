package harness

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
)

// Alive reports whether a process with this pid exists and is not a zombie.
func Alive(pid int) bool {
	now := state(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	return now != 0 && now != 'Z' && now != 'X'
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
