package proc

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// pollInterval bounds how late a death is noticed if the kernel does not report
// it. The end of stdin is nearly always noticed first.
const pollInterval = time.Second

func pollProcess(ctx context.Context, pid int) (<-chan struct{}, error) {
	if !Exists(pid) {
		return nil, fmt.Errorf("watch process %d: %w", pid, unix.ESRCH)
	}
	gone := make(chan struct{})
	go func() {
		ticks := time.NewTicker(pollInterval)
		defer ticks.Stop()
		for Exists(pid) {
			select {
			case <-ctx.Done():
				return
			case <-ticks.C:
			}
		}
		close(gone)
	}()
	return gone, nil
}
