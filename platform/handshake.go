package platform

import (
	"fmt"
)

// The sidecar and the stage share one stream socket, which is descriptor
// StageFD in the stage and close-on-exec there:
//
//	sidecar                          stage
//	start, in its group ───────────► mark every descriptor above 2 close-on-exec
//	Order ─────────────────────────► change directory, confine, prove it by the canary
//	      ◄───────────────────────── Report{Enforcement, Passed}, with the descriptors of what is handed over
//	(supervise)
//	one byte ──────────────────────► (only where something was handed over) prove that it is supervised, by calls that must be noticed
//	(notice them)
//	      ◄───────────────────────── end of stream: the target was executed
//	(take back of the enforcement what was not noticed)
//	   or ◄───────────────────────── Report{Failure}, then end of stream: it was not, and never will be
//
// Orders travel here, not in argv or the environment, because those are
// readable by others and limited in size. A stage whose sidecar dies before the
// order reads the end of the stream and exits.

// goAhead is the byte that lets a stage go on that has handed something over.
const goAhead = 'g'

// StageFD is the descriptor of the handshake in the stage.
const StageFD = 3

// Order is what the sidecar wants executed.
type Order struct {
	// Program is a path, or a name to be looked up in the PATH of Env. Empty:
	// confine, report and exit (a probe).
	Program string
	// Argv holds the arguments, the program's own name first.
	Argv []string
	// Env is the whole environment.
	Env []string
	// Dir is the working directory, absolute.
	Dir string
	// InSignalDomain has the stage enter a signal domain; see
	// lifecycle.SignalDomainGroup. It needs Orders, and a leader that was
	// started for it.
	InSignalDomain bool
	// Terminal is the terminal that the stage is to open; nil where the sidecar
	// has done so, or there is none.
	Terminal *Terminal
	// Orders are the backend's; null leaves the process unconfined.
	Orders Orders
}

// Terminal is a terminal to be opened, which becomes the session's controlling
// terminal and its standard output and error.
type Terminal struct {
	// Cols and Rows are its size.
	Cols uint16 `json:"cols"`
	Rows uint16 `json:"rows"`
	// NoInput leaves standard input as it is.
	NoInput bool `json:"noInput,omitempty"`
}

// Report is one message of the stage: either field is set.
type Report struct {
	Enforcement *Enforcement `json:"enforcement,omitempty"`
	// Passed names the descriptors that come with an enforcement, in their
	// order.
	Passed  []Passed `json:"passed,omitempty"`
	Failure *Failure `json:"failure,omitempty"`
}

// Passed is what a descriptor is that the stage hands over.
type Passed string

const (
	// PassedTerminal is the master of the terminal that the stage has opened.
	PassedTerminal Passed = "terminal"
	// PassedHeld is what the sidecar only holds open as long as the session
	// lives.
	PassedHeld Passed = "held"
	// PassedListener is Handover.Listener.
	PassedListener Passed = "listener"
	// PassedDiag is Handover.Diag. It comes only with a listener.
	PassedDiag Passed = "diag"
)

// Step names the part of the stage's work that failed.
type Step string

const (
	// StepDirectory is changing to the working directory.
	StepDirectory Step = "change directory"
	// StepConfine is confining; the machine or the policy is at fault.
	StepConfine Step = "confine"
	// StepProgram is finding and executing the program.
	StepProgram Step = "execute"
)

// Failure says why the target was not executed.
type Failure struct {
	Step Step `json:"step"`
	// Path is the file or directory concerned; empty where there is none.
	Path string `json:"path,omitempty"`
	// Cause is in words.
	Cause string `json:"cause"`
	// Denied is true where the cause is a lack of permission.
	Denied bool `json:"denied,omitempty"`
}

// Error renders the failure in the form of every error here: what was
// attempted, on what, cause.
func (f *Failure) Error() string {
	if f.Path == "" {
		return fmt.Sprintf("%s: %s", f.Step, f.Cause)
	}
	return fmt.Sprintf("%s: %s: %s", f.Step, f.Path, f.Cause)
}
