package lifecycle

import (
	"context"
	"os"

	"github.com/sandbox-sidecar/sandbox-sidecar/lifecycle/proc"
)

// Mechanisms of tracking, as in spawn replies.
const (
	MechanismCgroup       = "cgroup"
	MechanismSubreaper    = "subreaper"
	MechanismSeatbelt     = "seatbelt"
	MechanismDescent      = "parent_unique_id"
	MechanismProcessGroup = "process_group"
)

// Tracking describes how the processes of a session are held together.
type Tracking struct {
	// Mechanism is one of the Mechanism… names.
	Mechanism string
	// Guarantee is true if no process can leave its group by itself.
	Guarantee bool
	// Detail describes what the mechanism achieves and what not. Like Fix and
	// Warning it is one line.
	Detail string
	// Fix is what the user can do for a better mechanism; empty if there is
	// nothing to fix.
	Fix string
	// Warning is what else the user must know about this session; empty if
	// there is nothing.
	Warning string
	// CanUseSignalDomain is true if SignalDomainGroup.UseSignalDomain makes the
	// guarantee possible.
	CanUseSignalDomain bool
	// Limits says what can be limited of a session, or is.
	Limits Limited
}

// Limits bound what a session takes of the machine. 0 is no limit.
type Limits struct {
	Processes int   // and threads
	Memory    int64 // in bytes
	CPUWeight int   // cpu.weight of cgroup v2
	// Whole has the kernel end the whole session at its limit of memory.
	Whole bool
}

// Limited says which limits hold.
type Limited struct {
	Processes, Memory, CPU bool
	// Why says why not all of them hold, and Fix what the user can do. Where no
	// group can ever be limited, both are empty.
	Why, Fix string
}

// LimitedGroup is a group that may be limited.
type LimitedGroup interface {
	Group
	// Limit limits the group, as far as it can. It is called once, after the
	// leader was executed: a stage has more threads than a session may have.
	// Tracking then says how far. changed is called whenever Reached may have
	// changed.
	Limit(limits Limits, changed func())
	// Reached says how often limits were reached so far.
	Reached() Reached
}

// Reached says how often the limits of a group were reached.
type Reached struct {
	// Processes: the kernel has refused a process or a thread.
	Processes int
	// Memory: the kernel has killed a process to free memory.
	Memory int
}

// InSignalDomain is the tracking of a session that is in a signal domain and
// cannot signal its subreaper. CanUseSignalDomain must be true.
func (t Tracking) InSignalDomain() Tracking {
	t.Guarantee, t.Fix = true, ""
	t.Detail = "at the end one call kills every process of the session, and none can outrun it; " +
		"a subreaper adopts the orphans of the session"
	return t
}

// Group is a set of processes that end together. Its methods may be called from
// several goroutines.
type Group interface {
	// Guard makes sure that the group ends if this process dies, whatever the
	// group's processes do: it starts a watchdog unless one runs. Until it
	// has returned nil, only code of this program may run in the group, which
	// ends by itself if this process dies.
	Guard() error
	// Start starts the group's leader, like os.StartProcess, with all its
	// descendants in the group. It may be called once, or again after an error.
	// The leader must start nothing before Start has returned, unless it is a
	// member from its birth; see BirthGroup. It must lead a session of its own,
	// unless it runs on the caller's terminal. attr is changed.
	Start(path string, argv []string, attr *os.ProcAttr) (proc.Process, error)
	// Kill ends every process of the group. It returns how many it had to kill,
	// once the group is empty. If ctx ends first, the error wraps a *Survivors.
	Kill(ctx context.Context) (killed int, err error)
	// MakeDir makes a private directory that is removed with the group, even if
	// this process dies first. Its path is real, and short, because a socket's
	// path is limited to 107 bytes (unix(7)).
	MakeDir() (string, error)
	// Close releases the group's directories and kernel objects. The group must
	// be empty.
	Close() error
	// Tracking describes the mechanism.
	Tracking() Tracking
}

// SignalDomainGroup is a group whose processes can be put into a signal domain,
// and killed by one call.
type SignalDomainGroup interface {
	Group
	// UseSignalDomain gives the leader what EnterSignalDomain needs, and
	// reports whether it has it. It is called before Start; afterwards it only
	// reports. The processes can gain no privileges, mount nothing and signal
	// no process outside. So it is for sessions that may do none of that
	// anyway.
	UseSignalDomain() bool
}

// BirthGroup is a group that a process may be a member of from its birth.
type BirthGroup interface {
	Group
	// FromBirth reports whether what Start starts is a member before it executes
	// anything. Then it may be a program of the user's at once, after Guard.
	FromBirth() bool
}

// Marked is a group whose processes can be recognised by their sandbox.
type Marked interface {
	Group
	// Fingerprint is what the leader's sandbox must contain.
	Fingerprint() SessionFingerprint
	// Recognise proves that the fingerprint can be read. The leader must have
	// been confined, and have executed nothing. If it returns nil, Tracking has
	// its guarantee from then on. Otherwise the error is in its detail.
	Recognise() error
}
