package proc

import (
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// isStuck reports whether every thread of a process waits in an uninterruptible
// system call with SIGKILL pending, or has ended.
func isStuck(pid int) bool {
	tasks := "/proc/" + strconv.Itoa(pid) + "/task"
	threads, err := os.ReadDir(tasks)
	if err != nil {
		return false
	}
	for _, thread := range threads {
		status, err := os.ReadFile(tasks + "/" + thread.Name() + "/status")
		if err != nil || !beyondKilling(string(status)) {
			return false
		}
	}
	return true
}

// beyondKilling reads /proc/PID/task/TID/status.
func beyondKilling(status string) bool {
	waits, pending := false, false
	for line := range strings.Lines(status) {
		key, value, _ := strings.Cut(line, ":")
		value = strings.TrimSpace(value)
		switch key {
		case "State":
			if value != "" && (value[0] == 'Z' || value[0] == 'X') {
				return true // this thread has ended
			}
			waits = value != "" && value[0] == 'D'
		case "SigPnd":
			mask, err := strconv.ParseUint(value, 16, 64)
			pending = err == nil && mask&(1<<(unix.SIGKILL-1)) != 0
		}
	}
	return waits && pending
}
