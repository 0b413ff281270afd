//go:build unix

package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/sandbox-sidecar/sandbox-sidecar/control"
	"github.com/sandbox-sidecar/sandbox-sidecar/display"
	"github.com/sandbox-sidecar/sandbox-sidecar/lifecycle"
)

// errNotFromInside is the error of a command about other sessions.
var errNotFromInside = errors.New("inside a session: what else runs is not known there; run it outside")

// shownID is how many digits of an id are shown.
const shownID = 8

// listRunning prints what runs.
func listRunning(flags *flagSet, args []string) error {
	asJSON := flags.Bool("json", false, "print it as JSON, with whole ids")
	if err := parseNone(flags, args); err != nil {
		return err
	}
	if inSession() {
		return errNotFromInside
	}
	supervisors, silent := control.List(lifecycle.StateDirs(os.Environ()))
	if *asJSON {
		if supervisors == nil {
			supervisors = []control.Supervisor{}
		}
		text, err := json.MarshalIndent(supervisors, "", "  ")
		if err != nil {
			return err
		}
		fmt.Fprintf(output, "%s\n", display.JSON(text))
	} else {
		printRunning(stdout, supervisors, len(silent) > 0, time.Now())
	}
	for _, err := range silent {
		display.Fprintf(stderr, "sandbox-sidecar: warning: %v\n", err)
	}
	for _, s := range supervisors {
		if s.More > 0 {
			display.Fprintf(stderr, "sandbox-sidecar: warning: process %d runs more than it can list: %d\n",
				s.PID, s.More)
			silent = append(silent, nil)
		}
	}
	if len(silent) > 0 {
		return exitStatus(1)
	}
	return nil
}

// listedSession is a session with what has started it.
type listedSession struct {
	control.Session
	by string
}

// printRunning prints what runs, below its projects. Sessions come after the
// sandbox that they share. If some processes are silent, more may run.
func printRunning(w io.Writer, supervisors []control.Supervisor, someSilent bool, now time.Time) {
	var all []listedSession
	shared := map[string]time.Time{} // when a shared sandbox started
	for _, s := range supervisors {
		by := s.By
		if s.Client != "" {
			by += ", " + s.Client
		}
		for _, session := range s.Sessions {
			started := by
			if session.Joined {
				started = "exec --" + joinFlag
			}
			all = append(all, listedSession{session, started})
			if session.Shared {
				shared[session.ID] = session.StartedAt
			}
		}
	}
	if len(all) == 0 {
		if !someSilent {
			fmt.Fprintln(w, "no session runs")
		}
		return
	}
	place := func(s listedSession) (time.Time, string) {
		if s.Sandbox != "" {
			return shared[s.Sandbox], s.Sandbox
		}
		return s.StartedAt, s.ID
	}
	slices.SortStableFunc(all, func(a, b listedSession) int {
		timeA, sandboxA := place(a)
		timeB, sandboxB := place(b)
		return cmp.Or(strings.Compare(a.ProjectDir, b.ProjectDir), timeA.Compare(timeB),
			strings.Compare(sandboxA, sandboxB), compareFalse(!a.Shared, !b.Shared), a.StartedAt.Compare(b.StartedAt))
	})
	for i, s := range all {
		if i == 0 || s.ProjectDir != all[i-1].ProjectDir {
			display.Fprintf(w, "%s\n", display.Text(cmp.Or(s.ProjectDir, "no project")))
		}
		indent := "  "
		if s.Sandbox != "" {
			indent = "    "
		}
		display.Fprintf(w, "%s%-*.*s  %-8s  %-8s  %s  %s  %s\n", indent, shownID, shownID, display.Text(s.ID),
			display.Text(string(s.Kind)), display.Text(string(s.Status)), since(s.StartedAt, now),
			display.Text(s.by), what(s))
	}
}

func compareFalse(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}

// what is a session's command, or what is in a shared sandbox.
func what(s listedSession) string {
	if !s.Shared {
		return display.Text(strings.Join(s.Argv, " "))
	}
	text := "group " + display.Quote(s.Group)
	if s.Background > 0 {
		text += fmt.Sprintf(", in the background: %d", s.Background)
	}
	return text
}

// since is when a session started: the time, or the day if it was another.
func since(at, now time.Time) string {
	at, now = at.Local(), now.Local()
	if at.Format(time.DateOnly) != now.Format(time.DateOnly) {
		return at.Format(time.DateOnly)
	}
	return at.Format(time.TimeOnly) + "  "
}
