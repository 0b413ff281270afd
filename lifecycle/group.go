package lifecycle

import (
	"context"
	"os"

	"github.com/sandbox-sidecar/sandbox-sidecar/lifecycle/proc"
)

// Mechanisms of tracking, as they stand in spawn replies.
const (
	MechanismCgroup       = "cgroup"
	MechanismSubreaper    = "subreaper"
	MechanismSeatbelt     = "seatbelt"
	MechanismDescent      = "parent_unique_id"
	MechanismProcessGroup = "process_group"
)

// Tracking says how processes are held together.
type Tracking struct {
	// Mechanism is one of the Mechanism… names.
	Mechanism string
	// Guarantee is true where no process can leave its group by its own doing.
	Guarantee bool
	// Detail says in words what holds and what does not.
	Detail string
	// Fix says what the user can do for a better mechanism; empty where there
	// is nothing to mend.
	Fix string
	// Warning says in words what the user must know of this session beside
	// that; empty where there is nothing.
	Warning string
	// CanUseSignalDomain is true where the guarantee can be had by
	// SignalDomainGroup.UseSignalDomain.
	CanUseSignalDomain bool
}

// InSignalDomain is the tracking of a session that is in a signal domain, and
// that cannot signal its subreaper. It must be able to use one.
func (t Tracking) InSignalDomain() Tracking {
	t.Guarantee, t.Fix = true, ""
	t.Detail = "a subreaper adopts every process of the session that loses its parent; at the end all are killed by " +
		"one call, which none can outrun"
	return t
}

// Group is a set of processes that die together. Its methods may be called from
// several goroutines.
type Group interface {
	// Start starts the group's leader, as os.StartProcess does, so that it and
	// whatever it starts are of the group. It may be called once. The leader
	// must start nothing before Start has returned, and lead a session of its
	// own unless it is to run on the caller's terminal. attr is changed.
	Start(path string, argv []string, attr *os.ProcAttr) (proc.Process, error)
	// Kill ends every process of the group and returns how many it had to kill,
	// once the group is empty. When ctx ends first, the error wraps a
	// *Survivors.
	Kill(ctx context.Context) (killed int, err error)
	// MakeDir makes a private directory that goes with the group, also where
	// this process dies first. Its path is real, and short, because a socket's
	// path is limited to 107 bytes (unix(7)).
	MakeDir() (string, error)
	// Close gives back what the group holds: its directories, and what it has
	// in the kernel. The group must be empty.
	Close() error
	// Tracking describes the mechanism.
	Tracking() Tracking
}

// SignalDomainGroup is a group whose processes can be told from all others by
// the kernel, and killed at one blow.
type SignalDomainGroup interface {
	Group
	// UseSignalDomain gives the leader that is to be started what it needs to
	// put itself (EnterSignalDomain), and reports whether the leader has it.
	// After Start it only reports. Its processes gain no privileges, and cannot
	// mount or signal anybody outside, so it is for sessions that may not do
	// that anyway.
	UseSignalDomain() bool
}

// Marked is a group whose processes can be recognised by the sandbox that they
// are in.
type Marked interface {
	Group
	// Fingerprint is what the sandbox of the leader is to hold.
	Fingerprint() SessionFingerprint
	// Recognise proves that the fingerprint can be read. The leader must have
	// been confined, and not have executed anything. Where it returns nil,
	// Tracking has its guarantee from then on; otherwise the error stands in
	// its detail.
	Recognise() error
}
