//go:build unix

package lifecycle

import (
	"context"
	"os"

	"github.com/sandbox-sidecar/sandbox-sidecar/lifecycle/proc"
	"github.com/sandbox-sidecar/sandbox-sidecar/lifecycle/reserve"
)

// Process is a process that a group has started.
type Process = proc.Process

// Survivors is the error that names processes which were still alive when the
// time to kill them had run out. It wraps ErrSurvivors.
type Survivors = proc.Survivors

// ErrSurvivors is wrapped by Survivors.
var ErrSurvivors = proc.ErrSurvivors

// SmallRuntime is an environment for processes of this program that do one
// thing after another; see reserve.SmallRuntime.
var SmallRuntime = reserve.SmallRuntime

// Start starts a process that belongs to no group.
func Start(path string, argv []string, attr *os.ProcAttr) (Process, error) {
	return proc.Start(path, argv, attr)
}

// ReserveThreads starts threads that the runtime keeps; see proc.ReserveThreads.
func ReserveThreads(number int) { proc.ReserveThreads(number) }

// WatchProcess returns a channel that is closed when the process has ended; see
// proc.Watch.
func WatchProcess(ctx context.Context, pid int) (<-chan struct{}, error) { return proc.Watch(ctx, pid) }

// MachineMemory is how much memory the machine has, in bytes; 0 if nobody knows.
func MachineMemory() int64 { return proc.MachineMemory() }
