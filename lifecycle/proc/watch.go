package proc

import (
	"context"
	"fmt"

	"golang.org/x/sys/unix"
)

// Watch returns a channel that is closed when the process has ended. The
// process need not be a child. The watch stops when ctx ends, and leaves the
// channel open. A pid that names no process is an error.
func Watch(ctx context.Context, pid int) (<-chan struct{}, error) {
	if pid <= 0 {
		return nil, fmt.Errorf("watch process %d: not a process id", pid)
	}
	return watchProcess(ctx, pid)
}

// Exists reports whether a process has this pid. EPERM means that it exists and
// belongs to somebody else.
func Exists(pid int) bool {
	err := unix.Kill(pid, 0)
	return err == nil || err == unix.EPERM
}
