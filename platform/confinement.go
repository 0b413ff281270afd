package platform

import (
	"context"
	"encoding/json"
	"os"
	"syscall"

	"github.com/sandbox-sidecar/sandbox-sidecar/lifecycle"
)

// Confinement is one session's sandbox as a backend prepares it in the sidecar.
// The zero value confines nothing.
type Confinement struct {
	// Orders are for the backend's own half in the stage; nil leaves the
	// process unconfined.
	Orders Orders
	// OwnTerminal is true where the stage opens the session's terminal itself,
	// in a place that belongs to the session, when the order asks for a
	// terminal. Otherwise the sidecar opens it.
	OwnTerminal bool
	// Attach, where it is not nil, changes the attributes that the stage is
	// started with.
	Attach func(*syscall.SysProcAttr)
	// StandbyKey, where it is not empty, names what Attach does: OwnTerminal is
	// true then, and a stage that was started with no terminal for one
	// confinement can be given the order of another of the same standbyKey.
	StandbyKey string
	// InvalidateGuess, where it is not nil, is to be called where the stage
	// could not be started or confined: the confinement rests on a guess about
	// the machine, and the backend makes another after it has found out.
	InvalidateGuess func()
	// Watch, where it is not nil, watches the protected paths from before
	// anything of the session runs. It is told of alarms from another
	// goroutine, one at a time.
	Watch func(func(Alarm)) (Watcher, error)
	// Supervise, where it is not nil, takes over what the stage hands over for
	// that, before anything of the session runs.
	Supervise func(Handover) (Supervision, error)
}

// Handover is what a stage hands over for the supervision of its session. The
// files are to be closed by who takes them.
type Handover struct {
	// PID is the stage's, which becomes the session's leader.
	PID int
	// Listener is where the session's system calls arrive.
	Listener *os.File
	// Diag lists the sockets of the session's network namespace, where that is
	// not the sidecar's; otherwise nil.
	Diag *os.File
}

// Close closes every file.
func (h Handover) Close() {
	for _, file := range []*os.File{h.Listener, h.Diag} {
		if file != nil {
			file.Close()
		}
	}
}

// Hooks are what the sidecar wants of a confinement for its own ends, beside
// what the policy says. The zero value wants nothing.
type Hooks struct {
	// Mark, where it is not nil, is the group that the session's processes are
	// to be recognised in. Its fingerprint goes into the sandbox, and it is
	// asked to prove that, before anything of the session runs.
	Mark lifecycle.Marked
	// Denied, where it is not nil, is told what the session is refused, as far
	// as Policy.OnDenied asks for it and this machine can tell; what it cannot
	// stands in the report of Denials. It is called from several goroutines,
	// must not block, and may still be called a moment after Supervision.Close.
	Denied func(Denial)
	// Missed, where it is not nil, is told by the rules of Denied that
	// something may have been refused of which nothing more is known.
	Missed func()
	// Learn, where it is not nil, lists directories from which programs may be
	// executed beside those of the policy. All that the policy refuses is
	// wanted then: what runs is told to Denied as if it had been refused, and
	// Ask is asked about openings whatever Policy.OnDenied says, about as many
	// as there are, and answers at once.
	Learn []string
	// Ask, where it is not nil, is asked before a file that the policy does not
	// grant is refused, as far as that can be: what is opened is opened outside
	// of the session then, and handed in. The caller waits, for a minute at
	// most. It is called from goroutines of their own, a few at a time; ctx
	// ends when the answer is of no use any more. What is refused after all
	// goes to Denied.
	Ask func(ctx context.Context, denial Denial) Answer
}

// Supervision is what the sidecar does for a confined session as long as that
// lives.
type Supervision interface {
	// Close ends it. What the session would need it for fails from then on.
	// Closing twice is harmless.
	Close() error
}

// Proving is a Supervision that the stage puts to the proof, before it executes
// its target.
type Proving interface {
	Supervision
	// Proven takes back of what the stage has reported what the proof has not
	// shown. It is called once, when the target was executed.
	Proven(*Enforcement)
}

// Orders are what a backend tells its own half in the stage, in a form only the
// two understand.
type Orders json.RawMessage

// MarshalJSON passes the bytes through; nil is null.
func (o Orders) MarshalJSON() ([]byte, error) { return json.RawMessage(o).MarshalJSON() }

// UnmarshalJSON passes the bytes through; null is nil.
func (o *Orders) UnmarshalJSON(data []byte) error {
	if string(data) == "null" {
		*o = nil
		return nil
	}
	return (*json.RawMessage)(o).UnmarshalJSON(data)
}
