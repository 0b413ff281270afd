package spawn

import "github.com/sandbox-sidecar/sandbox-sidecar/lifecycle"

// Tracker makes groups of processes; *lifecycle.Tracker is one. Its methods may
// be called from several goroutines.
type Tracker interface {
	// NewGroup makes an empty group with a name of its own.
	NewGroup(name string) (lifecycle.Group, error)
	// Tracking describes the mechanism that groups get.
	Tracking() lifecycle.Tracking
	// Linger goes on killing a group with survivors, and closes it once it is
	// empty.
	Linger(group lifecycle.Group)
}
