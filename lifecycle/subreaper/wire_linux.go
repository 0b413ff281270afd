package subreaper

import (
	"errors"
	"os"
	"syscall"
)

// A subreaper and its sidecar share one stream socket, descriptor subreaperFD
// in the subreaper, on which each sends JSON values:
//
//	sidecar                         subreaper
//	subreaperOrder{Start} ───────────► start the leader
//	         ◄──────────────────── subreaperReport{Started} or {Errno}
//	subreaperOrder{Signal} ──────────► signal the leader, at any time
//	         ◄──────────────────── subreaperReport{Stopped} and at last {Ended}, as they come
//	subreaperOrder{Kill} ────────────► kill everything
//	         ◄──────────────────── subreaperReport{Killed}
//	subreaperOrder{Hold} ────────────► stop everybody, or let them go on
//	         ◄──────────────────── subreaperReport{Held}
//	end of stream ────────────────► kill everything, and end
//
// What the leader is to be travels here and by inheritance of descriptors, not
// in argv or the environment, which others can read.

// subreaperFD is the socket's descriptor in the subreaper. Those of the leader
// follow it.
const subreaperFD = 3

// subreaperOrder is one message to the subreaper: one field is set.
type orderMessage struct {
	Start  *startOrder    `json:"start,omitempty"`
	Signal syscall.Signal `json:"signal,omitempty"`
	Kill   *killOrder     `json:"kill,omitempty"`
	Hold   *holdOrder     `json:"hold,omitempty"`
}

// subreaperStart is what os.StartProcess takes. The strings are bytes to the
// kernel, and need not be the UTF-8 that JSON would make of them.
type startOrder struct {
	Path []byte   `json:"path"`
	Argv [][]byte `json:"argv"`
	Env  [][]byte `json:"env"`
	Dir  []byte   `json:"dir"`
	// Files are descriptors of the subreaper's; -1 is one that is to be closed.
	Files []int                `json:"files"`
	Sys   *syscall.SysProcAttr `json:"sys"`
	// SignalDomainGroup gives the leader what it needs to enter a signal
	// domain.
	InDomain bool `json:"inDomain,omitempty"`
	// TryDomain has the subreaper find out whether it could.
	TryDomain bool `json:"tryDomain,omitempty"`
}

// subreaperKill asks for the end of everything.
type killOrder struct {
	// ID comes back with the answer.
	ID int `json:"id"`
	// Milliseconds is the time for it.
	Milliseconds int64 `json:"milliseconds"`
}

// subreaperReport is one message from the subreaper: one field is set, or Errno
// with Attempt.
type reportMessage struct {
	Started *startedReport `json:"started,omitempty"`
	// Errno is why there will be no leader; Attempt is what failed.
	Errno   syscall.Errno       `json:"errno,omitempty"`
	Attempt string              `json:"attempt,omitempty"`
	Stopped *syscall.WaitStatus `json:"stopped,omitempty"`
	Ended   *syscall.WaitStatus `json:"ended,omitempty"`
	Killed  *killedReport       `json:"killed,omitempty"`
	Held    *heldReport         `json:"held,omitempty"`
}

// subreaperHold asks for everybody to be stopped, or to go on.
type holdOrder struct {
	// ID comes back with the answer.
	ID   int  `json:"id"`
	Held bool `json:"held"`
}

// subreaperHeld says what came of it.
type heldReport struct {
	ID int `json:"id"`
	// Problem is why nobody is held.
	Problem string `json:"problem,omitempty"`
}

// subreaperStarted is the leader.
type startedReport struct {
	PID   int    `json:"pid"`
	Birth uint64 `json:"birth"`
}

// subreaperKilled says what came of a kill.
type killedReport struct {
	ID    int `json:"id"`
	Count int `json:"count"`
	// Left is nil where nobody is.
	Left []int `json:"left"`
}

// newSubreaperStart describes a leader, and lists the descriptors that the
// subreaper must inherit for it, from subreaperFD+1 on.
func newStartOrder(path string, argv []string, attr *os.ProcAttr) (start *startOrder, inherited []*os.File,
	err error) {
	start = &startOrder{Path: []byte(path), Argv: bytesOf(argv), Env: bytesOf(attr.Env), Dir: []byte(attr.Dir),
		Sys: attr.Sys}
	if attr.Env == nil {
		start.Env = bytesOf(os.Environ()) // as os.StartProcess has it; the subreaper's own is empty
	}
	if start.Sys == nil {
		start.Sys = &syscall.SysProcAttr{}
	}
	if start.Sys.PidFD != nil || start.Sys.UseCgroupFD || start.Sys.Chroot != "" {
		return nil, nil, errors.New("start a leader by a subreaper: its attributes name what only this process has")
	}
	for _, file := range attr.Files {
		if file == nil {
			start.Files = append(start.Files, -1)
			continue
		}
		start.Files = append(start.Files, subreaperFD+1+len(inherited))
		inherited = append(inherited, file)
	}
	return start, inherited, nil
}

func bytesOf(list []string) [][]byte {
	out := make([][]byte, len(list))
	for i, s := range list {
		out[i] = []byte(s)
	}
	return out
}

func stringsOf(list [][]byte) []string {
	out := make([]string, len(list))
	for i, b := range list {
		out[i] = string(b)
	}
	return out
}
