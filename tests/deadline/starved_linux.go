package deadline

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// delays adds how long each thread of a process and of its descendants has waited
// for a processor.
func delays(pid int, of map[int]time.Duration) {
	for _, thread := range threads(pid) {
		addDelay(pid, thread, of)
		children, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, thread))
		for _, child := range strings.Fields(string(children)) {
			if id, err := strconv.Atoi(child); err == nil {
				delays(id, of)
			}
		}
	}
}

// ownDelays adds those of a process's own threads.
func ownDelays(pid int, of map[int]time.Duration) {
	for _, thread := range threads(pid) {
		addDelay(pid, thread, of)
	}
}

// addDelay adds that of one thread (schedstat, proc(5)).
func addDelay(pid, thread int, of map[int]time.Duration) {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/schedstat", pid, thread))
	if fields := strings.Fields(string(text)); len(fields) == 3 {
		delay, _ := strconv.ParseInt(fields[1], 10, 64)
		of[thread] += time.Duration(delay)
	}
}

// threads lists those of a process; none if it has ended.
func threads(pid int) (list []int) {
	dir, err := os.Open(fmt.Sprintf("/proc/%d/task", pid))
	if err != nil {
		return nil
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(-1)
	for _, name := range names {
		if thread, err := strconv.Atoi(name); err == nil {
			list = append(list, thread)
		}
	}
	return list
}
