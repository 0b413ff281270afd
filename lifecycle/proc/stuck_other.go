//go:build unix && !linux

package proc

import "time"

// isStuck is always false: this system does not report it.
func isStuck(int) bool { return false }

// stalled is always 0: this system does not report it.
func stalled() time.Duration { return 0 }
