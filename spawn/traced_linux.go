package spawn

import (
	"os"
	"os/signal"
	"strconv"

	"golang.org/x/sys/unix"
)

// reapTraced reaps, until done is closed, the leader's dead threads that have
// made this process their tracer (PTRACE_TRACEME, ptrace(2)). Such a thread
// stays a zombie until its tracer waits for it. The leader and its cgroup stay
// as long. The kernel reports the thread's death with SIGCHLD, like a child's.
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
