package platform

import (
	"context"
	"net"
	"os"
	"syscall"

	"github.com/sandbox-sidecar/sandbox-sidecar/lifecycle"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/handshake"
)

// Confinement is one session's sandbox, as a backend prepares it in the
// sidecar. The zero value confines nothing.
type Confinement struct {
	// Orders are for the backend's part in the stage. If they are nil, the
	// process is not confined.
	Orders Orders
	// OwnTerminal is true if the stage opens the session's terminal itself, in
	// a private /dev/pts, when the order asks for one. Otherwise the sidecar
	// opens it.
	OwnTerminal bool
	// OwnTemporary is true if the stage puts the project's own directories in
	// the place of policy.Policy.Temporary. Otherwise sessions share those with
	// all programs.
	OwnTemporary bool
	// Environ are variables that the session gets beyond the policy's, in the
	// place of others with their names.
	Environ []string
	// Lacking is what the policy grants for writing and the session cannot have,
	// with sentences for the user.
	Lacking []Missing
	// Attach, if not nil, changes the attributes that the stage is started
	// with.
	Attach func(*syscall.SysProcAttr)
	// StandbyKey identifies what Attach does; it is empty if that is nothing. A
	// stage that was started for one confinement can be given the order of
	// another with the same key.
	StandbyKey string
	// InvalidateGuess, if not nil, must be called if the stage could not be
	// started or confined. The confinement rests on a guess about the machine;
	// the backend then checks the machine and makes another.
	InvalidateGuess func()
	// Descriptors are those that the stage passes beside a terminal and held
	// files, which Localhost and Supervise take. A kind that may come twice is
	// listed twice.
	Descriptors []Descriptor
	// Localhost, if not nil, takes what the stage passes of the session's own
	// localhost, before Supervise. It is nil if the session has none of its own.
	Localhost func(Handover) Localhost
	// Watch, if not nil, starts to watch the protected paths, before anything
	// of the session runs. The functions of its argument are called from another
	// goroutine.
	Watch func(Watch) (Watcher, error)
	// Prepare, if not nil, is called with the stage's process id while the
	// stage confines itself, from another goroutine. It finds out what
	// Supervise would take time for, and returns it as Handover.Prepared.
	Prepare func(pid int) any
	// Supervise, if not nil, takes what the stage passes for supervision,
	// before anything of the session runs.
	Supervise func(Handover) (Supervision, error)
}

// Descriptor is one that a stage passes for the backend's part in the sidecar.
type Descriptor struct {
	Kind handshake.Passed
	// Required is true if the session must not start without it.
	Required bool
}

// Handover is what a stage passes for the supervision of its session. The
// receiver closes it.
type Handover struct {
	// PID is the stage's process id. The stage becomes the session's leader.
	PID int
	// Prepared is what Confinement.Prepare has returned.
	Prepared any
	// Files are what came of Confinement.Descriptors, by their kind.
	Files map[handshake.Passed][]*os.File
}

// Take returns the next file of a kind, which the caller closes; nil if there is
// none.
func (h Handover) Take(kind handshake.Passed) *os.File {
	files := h.Files[kind]
	if len(files) == 0 {
		return nil
	}
	h.Files[kind] = files[1:]
	return files[0]
}

// Close closes every file that was not taken.
func (h Handover) Close() {
	for kind := range h.Files {
		for file := h.Take(kind); file != nil; file = h.Take(kind) {
			file.Close()
		}
	}
}

// Localhost connects to servers of a session on the session's own localhost.
type Localhost interface {
	// Dial connects to a port.
	Dial(ctx context.Context, port uint16) (*net.TCPConn, error)
	// Close must be called once the session's processes are gone. Connections
	// stay. Closing twice is harmless.
	Close() error
}

// Hooks are what the sidecar wants from a confinement beyond the policy. The
// zero value wants nothing.
type Hooks struct {
	// Mark, if not nil, is the group to recognise the session's processes by.
	// Its fingerprint goes into the sandbox, and it must prove that before
	// anything of the session runs.
	Mark lifecycle.Marked
	// Denied, if not nil, is called for each denial, as far as Policy.OnDenied
	// asks for it and this machine can report it. The report of the protection
	// Denials says what it cannot. It is called from several goroutines, must
	// not block, and may still be called shortly after Supervision.Close.
	Denied func(Denial)
	// Configured, if not nil, is called as Denied is, if a session has changed
	// the configuration of a git repository in a way that is accepted. keys are
	// the settings.
	Configured func(path string, keys []string)
	// Connected, if not nil, is called as Denied is, for each connection that the
	// sidecar has made to a host, "host:port". process is the program's name for
	// itself, if it is known.
	Connected func(target, process string)
	// Crowded, if not nil, is called as Denied is, for each connection to a host
	// that was refused because the session has too many: with how many it may
	// have. shared is true if that is less than the policy says, as the sidecar has
	// no more.
	Crowded func(most int, shared bool)
	// Opener, if not nil, serves the connections to some hosts in the place of the
	// relay. Only connections that the policy allows reach it.
	Opener Opener
	// Shared has the stage execute the init of a group: this very program, in the
	// role handshake.GroupInit. Commands can change none of its limits.
	Shared bool
	// Learn, if not nil, lists directories from which programs may be executed
	// beyond the policy. Then every denial is wanted: Denied is called for each
	// program that runs as if it had been denied. Ask is called for each open,
	// whatever Policy.OnDenied says, for any number of them, and must answer at
	// once.
	Learn []string
	// Ask, if not nil, is called before an open that the policy does not grant
	// is denied, or a change of a name ([Denial.Change]), if the machine can do
	// that. If the answer allows it, the sidecar opens the file outside the
	// sandbox and passes it in, or makes the change. The calling process waits,
	// for a minute at most. Ask is called from separate
	// goroutines, a few at a time. ctx ends when the answer is no longer
	// needed. If the file is denied after all, Denied is called.
	Ask func(ctx context.Context, denial Denial) Answer
}

// Opener serves connections of a session to hosts by what they hold.
type Opener interface {
	// Opens reports whether it serves connections to a host, by its name in the form
	// of hosts.Canonical.
	Opens(name string, port uint16) bool
	// Serve serves a client that has connected to a host, until both have
	// ended or ctx ends. It closes both connections.
	Serve(ctx context.Context, client, host *net.TCPConn, name string, port uint16)
}

// Supervision is what the sidecar does for a confined session while it lives.
type Supervision interface {
	// Close ends it. Whatever the session needs it for fails from then on.
	// Closing twice is harmless.
	Close() error
}

// ChangeWitness is a Supervision that may know whether its session has changed
// any file.
type ChangeWitness interface {
	Supervision
	// ChangedNothing reports whether no process of the session has asked for
	// anything that could change a file, or have another process change one,
	// except through descriptors that it was started with. Until Close has
	// returned it speaks of the calls that were answered so far.
	ChangedNothing() bool
}

// Proving is a Supervision that the stage tests before it executes its target.
type Proving interface {
	Supervision
	// Proven corrects the stage's report by what the test has not shown. It is
	// called once, when the target was executed.
	Proven(*Enforcement)
}
