//go:build unix && !linux

package reserve

// macOS counts processes, not threads, so a session at the limit does not end
// this program.

// Leave calls start.
func Leave(start func() error) error { return start() }

// Seal changes nothing.
func Seal() error { return nil }

// SealLeader changes nothing.
func SealLeader(int) {}

// Keep calls start.
func Keep(start func() error) error { return start() }
