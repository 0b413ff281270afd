package proc

import "context"

func watchProcess(ctx context.Context, pid int) (<-chan struct{}, error) {
	return pollProcess(ctx, pid)
}

// awaitChild returns early, which it may: the caller's wait holds a thread.
func awaitChild(int) {}
