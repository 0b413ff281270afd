package handshake

import "fmt"

// The sidecar and the stage share one stream socket, which is descriptor
// StageFD in the stage and close-on-exec there:
//
//	sidecar                        stage
//	start, in its group ─────────► mark every descriptor above 2 close-on-exec
//	Order ───────────────────────► change directory, confine, prove by canaries
//	      ◄─────────────────────── Report{Passed}, with descriptors, if there
//	(supervise)                    are any; Report{Enforcement}
//	one byte, if something
//	was passed ──────────────────► prove that it is supervised
//	(read the enforcement)
//	(notice the test denials)
//	      ◄─────────────────────── end of stream: the target was executed
//	(correct the enforcement)
//	   or ◄─────────────────────── Report{Failure}, then end of stream
//
// After a Failure the stage executes nothing. A stage whose sidecar dies before
// the order reads the end of the stream and exits. See
// docs/design/handshake.md.

// GoAhead is the byte after which a stage that has passed something continues.
const GoAhead = 'g'

// StageFD is the handshake's descriptor number in the stage.
const StageFD = 3

// OwnFDs is the first descriptor that the stage has no use for itself: the one
// below is of the signal domain.
const OwnFDs = 5

// Report is one message of the stage. One of its fields is set; Closed may come
// with Enforcement.
type Report struct {
	// Passed names the descriptors that come with the message, in their order.
	// It is a message of its own and the first, so that the sidecar need not
	// read the enforcement before it supervises.
	Passed      []Passed     `json:"passed,omitempty"`
	Enforcement *Enforcement `json:"enforcement,omitempty"`
	// Closed are the inherited descriptors that the program does not get.
	Closed  []Closed `json:"closed,omitempty"`
	Failure *Failure `json:"failure,omitempty"`
}

// Closed is an inherited descriptor that the program does not get.
type Closed struct {
	// Number is the descriptor as the caller knows it.
	Number int `json:"number"`
	// What is what it leads to, such as "a socket" or a path.
	What string `json:"what"`
}

// Passed is the kind of a descriptor that the stage passes. A backend has more
// than these.
type Passed string

const (
	// PassedTerminal is the master of the terminal that the stage has opened.
	PassedTerminal Passed = "terminal"
	// PassedHeld is a file that the sidecar only keeps open while the session
	// lives.
	PassedHeld Passed = "held"
)

// Step is the part of the stage's work that failed.
type Step string

const (
	// StepDirectory is changing to the working directory.
	StepDirectory Step = "change directory"
	// StepConfine is confining: the machine or the policy is at fault.
	StepConfine Step = "confine"
	// StepProgram is finding and executing the program.
	StepProgram Step = "execute"
	// StepStreams is opening and checking the standard streams of a call.
	StepStreams Step = "open standard streams"
)

// Failure says why the target was not executed.
type Failure struct {
	Step Step `json:"step"`
	// Path is the file or directory concerned; empty if there is none.
	Path string `json:"path,omitempty"`
	// Cause is a text.
	Cause string `json:"cause"`
	// Denied is true if the cause is a missing permission.
	Denied bool `json:"denied,omitempty"`
	// Missing is true if the cause is that Path does not exist.
	Missing bool `json:"missing,omitempty"`
}

// Error returns what was attempted, on what, and the cause.
func (f *Failure) Error() string {
	if f.Path == "" {
		return fmt.Sprintf("%s: %s", f.Step, f.Cause)
	}
	return fmt.Sprintf("%s: %s: %s", f.Step, f.Path, f.Cause)
}
