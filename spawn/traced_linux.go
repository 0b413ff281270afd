package spawn

import (
	"os"
	"os/signal"
	"strconv"

	"golang.org/x/sys/unix"
)

// reapTraced reaps, until done is closed, the leader's dead threads that have
// made us their tracer. A thread can do that by itself (PTRACE_TRACEME,
// ptrace(2)), and then stays a zombie until its tracer has waited for it, and
// the leader, its cgroup with it, until the thread is gone. The kernel tells of
// its death as of a child's.
func reapTraced(done <-chan struct{}, leader int) {
	children := make(chan os.Signal, 1)
	signal.Notify(children, unix.SIGCHLD)
	defer signal.Stop(children)
	for {
		reapThreads(leader)
		select {
		case <-children:
		case <-done:
			return
		}
	}
}

func reapThreads(leader int) {
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
