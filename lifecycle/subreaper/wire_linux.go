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
//	orderMessage{Start} ──────────► start the leader
//	         ◄──────────────────── reportMessage{Started} or {Errno}
//	orderMessage{Signal} ─────────► signal the leader, at any time
//	         ◄──────────────────── reportMessage{Stopped} and at last {Ended}, as they come
//	orderMessage{Kill} ───────────► kill everything
//	         ◄──────────────────── reportMessage{Killed}
//	orderMessage{Hold} ───────────► pause the session, or resume it
//	         ◄──────────────────── reportMessage{Held}
//	end of stream ────────────────► kill everything, and end
//
// The leader's description is sent here and by inheritance of descriptors. In
// argv or the environment other processes could read it.

// subreaperFD is the socket's descriptor in the subreaper. The leader's
// descriptors follow it.
const subreaperFD = 3

// orderMessage is one message to the subreaper: one field is set.
type orderMessage struct {
	Start  *startOrder    `json:"start,omitempty"`
	Signal syscall.Signal `json:"signal,omitempty"`
	Kill   *killOrder     `json:"kill,omitempty"`
	Hold   *holdOrder     `json:"hold,omitempty"`
}

// startOrder holds the arguments of os.StartProcess. The strings are bytes,
// because JSON would turn them into valid UTF-8.
type startOrder struct {
	Path []byte   `json:"path"`
	Argv [][]byte `json:"argv"`
	Env  [][]byte `json:"env"`
	Dir  []byte   `json:"dir"`
	// Files are descriptors of the subreaper; -1 means closed.
	Files []int                `json:"files"`
	Sys   *syscall.SysProcAttr `json:"sys"`
	// InDomain gives the leader what it needs to enter a signal domain.
	InDomain bool `json:"inDomain,omitempty"`
	// TryDomain has the subreaper find out whether signal domains work.
	TryDomain bool `json:"tryDomain,omitempty"`
}

// killOrder asks for the end of everything.
type killOrder struct {
	// ID is repeated in the answer.
	ID int `json:"id"`
	// Milliseconds is the time that the kill may take.
	Milliseconds int64 `json:"milliseconds"`
}

// reportMessage is one message from the subreaper: one field is set, or Errno
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

// holdOrder asks to pause the session, or to resume it.
type holdOrder struct {
	// ID is repeated in the answer.
	ID   int  `json:"id"`
	Held bool `json:"held"`
}

// heldReport is the result.
type heldReport struct {
	ID int `json:"id"`
	// Problem is why the session is not paused.
	Problem string `json:"problem,omitempty"`
}

// startedReport describes the leader.
type startedReport struct {
	PID   int    `json:"pid"`
	Birth uint64 `json:"birth"`
}

// killedReport is the result of a kill.
type killedReport struct {
	ID    int `json:"id"`
	Count int `json:"count"`
	// Left is nil if no process is left.
	Left []int `json:"left"`
}

// newStartOrder describes a leader, and lists the descriptors that the
// subreaper must inherit for it, from subreaperFD+1 on.
func newStartOrder(path string, argv []string, attr *os.ProcAttr) (start *startOrder, inherited []*os.File,
	err error,
) {
	start = &startOrder{
		Path: []byte(path), Argv: bytesOf(argv), Env: bytesOf(attr.Env), Dir: []byte(attr.Dir),
		Sys: attr.Sys,
	}
	if attr.Env == nil {
		start.Env = bytesOf(os.Environ()) // like os.StartProcess; the subreaper's own environment is empty
	}
	if start.Sys == nil {
		start.Sys = &syscall.SysProcAttr{}
	}
	if start.Sys.PidFD != nil || start.Sys.UseCgroupFD || start.Sys.Chroot != "" {
		return nil, nil, errors.New("start leader: its attributes refer to objects of this process")
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
