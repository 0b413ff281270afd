package deadline

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// delays adds how long each thread of a process and of its descendants has waited
// for a processor.
func delays(pid int, of map[int]time.Duration) {
	ownDelays(pid, of)
	tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*", pid))
	for _, task := range tasks {
		children, _ := os.ReadFile(filepath.Join(task, "children"))
		for _, child := range strings.Fields(string(children)) {
			if id, err := strconv.Atoi(child); err == nil {
				delays(id, of)
			}
		}
	}
}

// ownDelays adds those of a process's own threads (schedstat, proc(5)).
func ownDelays(pid int, of map[int]time.Duration) {
	stats, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
	for _, stat := range stats {
		text, _ := os.ReadFile(stat)
		if fields := strings.Fields(string(text)); len(fields) == 3 {
			delay, _ := strconv.ParseInt(fields[1], 10, 64)
			thread, _ := strconv.Atoi(filepath.Base(filepath.Dir(stat)))
			of[thread] += time.Duration(delay)
		}
	}
}
