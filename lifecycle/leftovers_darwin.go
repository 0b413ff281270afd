package lifecycle

import (
	"context"
	"fmt"
)

// endCgroup refuses: there are none here.
func endCgroup(_ context.Context, r record, _ bool) error {
	return fmt.Errorf("end cgroup %q: this system has none", r.Cgroup)
}

// endSubreaper refuses: there are none here.
func endSubreaper(_ context.Context, pid int, _ string) error {
	return fmt.Errorf("end subreaper %d: this system has none", pid)
}

// endMarked kills whoever carries a dead sidecar's fingerprint, and whoever
// descends from those that it knew.
func endMarked(ctx context.Context, m marked) error {
	group := markedGroup{fingerprint: m.fingerprint, carries: carriesFingerprint, table: ownProcesses}
	boot, err := bootID()
	if err == nil && boot == m.boot { // or the numbers are those of other processes
		group.ancestry = newAncestry(identify, m.relatives...)
	}
	if _, err := group.killLoop(0).converge(ctx); err != nil {
		return fmt.Errorf("end session %s: %w", m.fingerprint.ID, err)
	}
	return nil
}
