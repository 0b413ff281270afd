package lifecycle

import (
	"errors"
	"os"
	"syscall"
)

// A keeper and its sidecar share one stream socket, descriptor keeperFD in the keeper, on which each sends JSON values:
//
//	sidecar                         keeper
//	keeperOrder{Start} ───────────► start the leader
//	         ◄──────────────────── keeperReport{Started} or {Errno}
//	keeperOrder{Signal} ──────────► signal the leader, at any time
//	         ◄──────────────────── keeperReport{Stopped} and at last {Ended}, as they come
//	keeperOrder{Kill} ────────────► kill everything
//	         ◄──────────────────── keeperReport{Killed}
//	keeperOrder{Hold} ────────────► stop everybody, or let them go on
//	         ◄──────────────────── keeperReport{Held}
//	end of stream ────────────────► kill everything, and end
//
// What the leader is to be travels here and by inheritance of descriptors, not in argv or the environment, which others can read.

// keeperFD is the socket's descriptor in the keeper. Those of the leader follow it.
const keeperFD = 3

// keeperOrder is one message to the keeper: one field is set.
type keeperOrder struct {
	Start  *keeperStart   `json:"start,omitempty"`
	Signal syscall.Signal `json:"signal,omitempty"`
	Kill   *keeperKill    `json:"kill,omitempty"`
	Hold   *keeperHold    `json:"hold,omitempty"`
}

// keeperStart is what os.StartProcess takes. The strings are bytes to the kernel, and need not be the UTF-8 that JSON would make of them.
type keeperStart struct {
	Path []byte   `json:"path"`
	Argv [][]byte `json:"argv"`
	Env  [][]byte `json:"env"`
	Dir  []byte   `json:"dir"`
	// Files are descriptors of the keeper's; -1 is one that is to be closed.
	Files []int                `json:"files"`
	Sys   *syscall.SysProcAttr `json:"sys"`
	// Enclosed gives the leader what it needs to enclose itself.
	Enclosed bool `json:"enclosed,omitempty"`
	// TryEnclosure has the keeper find out whether it could.
	TryEnclosure bool `json:"tryEnclosure,omitempty"`
}

// keeperKill asks for the end of everything.
type keeperKill struct {
	// ID comes back with the answer.
	ID int `json:"id"`
	// Milliseconds is the time for it.
	Milliseconds int64 `json:"milliseconds"`
}

// keeperReport is one message from the keeper: one field is set, or Errno with Attempt.
type keeperReport struct {
	Started *keeperStarted `json:"started,omitempty"`
	// Errno is why there will be no leader; Attempt is what failed.
	Errno   syscall.Errno       `json:"errno,omitempty"`
	Attempt string              `json:"attempt,omitempty"`
	Stopped *syscall.WaitStatus `json:"stopped,omitempty"`
	Ended   *syscall.WaitStatus `json:"ended,omitempty"`
	Killed  *keeperKilled       `json:"killed,omitempty"`
	Held    *keeperHeld         `json:"held,omitempty"`
}

// keeperHold asks for everybody to be stopped, or to go on.
type keeperHold struct {
	// ID comes back with the answer.
	ID   int  `json:"id"`
	Held bool `json:"held"`
}

// keeperHeld says what came of it.
type keeperHeld struct {
	ID int `json:"id"`
	// Problem is why nobody is held.
	Problem string `json:"problem,omitempty"`
}

// keeperStarted is the leader.
type keeperStarted struct {
	PID   int    `json:"pid"`
	Birth uint64 `json:"birth"`
}

// keeperKilled says what came of a kill.
type keeperKilled struct {
	ID    int `json:"id"`
	Count int `json:"count"`
	// Left is nil where nobody is.
	Left []int `json:"left"`
}

// newKeeperStart describes a leader, and lists the descriptors that the keeper must inherit for it, from keeperFD+1 on.
func newKeeperStart(path string, argv []string, attr *os.ProcAttr) (start *keeperStart, inherited []*os.File, err error) {
	start = &keeperStart{Path: []byte(path), Argv: bytesOf(argv), Env: bytesOf(attr.Env), Dir: []byte(attr.Dir), Sys: attr.Sys}
	if attr.Env == nil {
		start.Env = bytesOf(os.Environ()) // as os.StartProcess has it; the keeper's own is empty
	}
	if start.Sys == nil {
		start.Sys = &syscall.SysProcAttr{}
	}
	if start.Sys.PidFD != nil || start.Sys.UseCgroupFD || start.Sys.Chroot != "" {
		return nil, nil, errors.New("start a leader by a keeper: its attributes name what only this process has")
	}
	for _, file := range attr.Files {
		if file == nil {
			start.Files = append(start.Files, -1)
			continue
		}
		start.Files = append(start.Files, keeperFD+1+len(inherited))
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
