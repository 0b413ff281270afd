//go:build unix && !linux

package proc

// macOS counts processes, not threads, so a session at the limit does not end
// this program.

// LeaveReserve calls start.
func LeaveReserve(start func() error) error { return start() }

// SealReserve changes nothing.
func SealReserve() error { return nil }

func withLimit(start func() error) error { return start() }
