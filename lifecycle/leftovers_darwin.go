package lifecycle

import (
	"context"
	"fmt"
)

// endCgroup refuses: there are none here.
func endCgroup(_ context.Context, dir string) error {
	return fmt.Errorf("end cgroup %q: this system has none", dir)
}

// endKeeper refuses: there are none here.
func endKeeper(_ context.Context, pid int, _ string) error {
	return fmt.Errorf("end keeper %d: this system has none", pid)
}
