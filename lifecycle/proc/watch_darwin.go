package proc

import "context"

func watchProcess(ctx context.Context, pid int) (<-chan struct{}, error) {
	return pollProcess(ctx, pid)
}
