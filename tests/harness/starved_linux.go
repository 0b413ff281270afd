package harness

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// Starved is how long the threads of a process and of its descendants have
// waited for a processor in total (schedstat, proc(5)). What takes long for
// that reason waits for nothing else.
func Starved(pid int) time.Duration {
	sum := StarvedItself(pid)
	tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*", pid))
	for _, task := range tasks {
		children, _ := os.ReadFile(filepath.Join(task, "children"))
		for _, child := range strings.Fields(string(children)) {
			if id, err := strconv.Atoi(child); err == nil {
				sum += Starved(id)
			}
		}
	}
	return sum
}

// StarvedItself is Starved without descendants, whose number changes.
func StarvedItself(pid int) (sum time.Duration) {
	stats, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
	for _, stat := range stats {
		text, _ := os.ReadFile(stat)
		if fields := strings.Fields(string(text)); len(fields) == 3 {
			delay, _ := strconv.ParseInt(fields[1], 10, 64)
			sum += time.Duration(delay)
		}
	}
	return sum
}

// ProcessorTime returns how long all threads of a process have run. Unlike the
// time on the clock it says the same on a busy machine.
func ProcessorTime(t testing.TB, pid int) time.Duration {
	t.Helper()
	// CPUCLOCK_SCHED in include/linux/posix-timers_types.h; clock_getcpuclockid(3)
	const perProcess = 2
	var spent unix.Timespec
	Must(t, unix.ClockGettime(int32(^pid)<<3|perProcess, &spent))
	return time.Duration(spent.Nano())
}
