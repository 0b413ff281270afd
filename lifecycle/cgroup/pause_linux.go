package cgroup

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// freezeTimeout is how long Pause waits for the kernel to report that all
// processes are frozen. It never reports a process as frozen that a supervisor
// holds in a system call.
const freezeTimeout = 50 * time.Millisecond

// Pause stops every process with the kernel's freezer (cgroup v2, Linux 5.2).
// No parent is notified of a stop, and a child that is forked meanwhile is
// frozen too. Once the file is written, no process executes another instruction
// of its own. System calls that the kernel is in the middle of may still
// finish, and end early.
func (g *Group) Pause(ctx context.Context) (func() error, error) {
	freeze := filepath.Join(g.dir, "cgroup.freeze")
	if err := writeCgroup(freeze, "1"); err != nil {
		return nil, fmt.Errorf("pause session: %w", err)
	}
	end := time.Now().Add(freezeTimeout)
	for time.Now().Before(end) && ctx.Err() == nil {
		events, err := os.ReadFile(filepath.Join(g.dir, "cgroup.events"))
		if err != nil || bytes.Contains(events, []byte("frozen 1")) {
			break
		}
		time.Sleep(time.Millisecond)
	}
	return func() error {
		if err := ignoreGone(writeCgroup(freeze, "0")); err != nil {
			return fmt.Errorf("resume session: %w", err)
		}
		return nil
	}, nil
}
