//go:build unix && !linux

package proc

// isStuck is always false: this system does not report it.
func isStuck(int) bool { return false }
