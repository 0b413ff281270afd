//go:build unix

package proc

import (
	"os"
	"os/signal"
	"syscall"

	"github.com/sandbox-sidecar/sandbox-sidecar/lifecycle/reserve"
)

// Process is a process that a group has started. Its methods may be called from
// several goroutines, but Wait from one at a time.
type Process interface {
	// PID is its process id.
	PID() int
	// Wait waits until the process has ended, or has stopped if stops is true,
	// and returns which. It must not be called again after an end.
	Wait(stops bool) (syscall.WaitStatus, error)
	// Signal sends a signal; os.ErrProcessDone if the process has ended.
	Signal(signal syscall.Signal) error
}

// child is a child of this process.
type child struct {
	process *os.Process
	pid     int // process.Pid is overwritten by Release
}

func (c child) PID() int { return c.pid }

func (c child) Wait(stops bool) (syscall.WaitStatus, error) {
	if !stops {
		awaitChild(c.pid) // a thread for each idle session would take more memory than the rest of it
		state, err := c.process.Wait()
		if err != nil {
			return 0, err
		}
		own.ended(c.pid)
		return state.Sys().(syscall.WaitStatus), nil
	}
	// os.Process.Wait does not report a stop, and no descriptor does. A thread
	// for each session would be missing when a session takes all of them.
	children := make(chan os.Signal, 1)
	signal.Notify(children, syscall.SIGCHLD)
	defer signal.Stop(children)
	for {
		var status syscall.WaitStatus
		changed, err := syscall.Wait4(c.pid, &status, syscall.WUNTRACED|syscall.WNOHANG, nil)
		if err == syscall.EINTR {
			continue
		}
		if err == nil && changed == 0 {
			<-children
			continue
		}
		if err == nil && !status.Stopped() {
			own.ended(c.pid)
			_ = c.process.Release()
		}
		return status, err
	}
}

func (c child) Signal(signal syscall.Signal) error { return c.process.Signal(signal) }

// Start starts a process that belongs to no group.
func Start(path string, argv []string, attr *os.ProcAttr) (Process, error) {
	return start(path, argv, attr, reserve.Keep)
}

// StartLeader starts the leader of a session, which leaves a reserve of the
// user's processes to this program; see reserve.Leave.
func StartLeader(path string, argv []string, attr *os.ProcAttr) (Process, error) {
	return start(path, argv, attr, reserve.Leave)
}

func start(path string, argv []string, attr *os.ProcAttr, limited func(func() error) error) (Process, error) {
	process, err := own.start(path, argv, attr, limited)
	if err != nil {
		return nil, err
	}
	return child{process, process.Pid}, nil
}

// GiveUp kills a process that was started and could not be added to its group.
func GiveUp(p Process) {
	_ = p.Signal(syscall.SIGKILL)
	_, _ = p.Wait(false)
}
