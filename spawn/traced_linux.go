package spawn

import (
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// reapTraced reaps the leader's dead threads that have made us their tracer. A thread can do that by itself (PTRACE_TRACEME, ptrace(2)),
// and then stays a zombie until its tracer has waited for it, and the leader, its cgroup with it, until the thread is gone.
func reapTraced(leader int) {
	tasks, err := os.ReadDir("/proc/" + strconv.Itoa(leader) + "/task")
	if err != nil {
		return
	}
	for _, task := range tasks {
		if tid, err := strconv.Atoi(task.Name()); err == nil && tid != leader {
			_, _ = unix.Wait4(tid, nil, unix.WNOHANG|unix.WALL, nil)
		}
	}
}
