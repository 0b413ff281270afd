//go:build unix

package report

import (
	"context"
	"slices"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/presentation"
	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/window"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/compile"
	"github.com/sandbox-sidecar/sandbox-sidecar/spawn"
)

// Report reports one session to a window. A nil one reports nothing.
type Report struct {
	window *window.Window
	about  Session
	begun  chan struct{} // closed once the window knows the session, or never will
	lost   atomic.Bool   // something was not sent
}

// Session is what a report is about.
type Session struct {
	Running    *spawn.Foreground
	Compiled   compile.Result
	PolicyID   string // without the variables of a shell
	Store      *settings.Store
	Cwd        string
	ProjectDir string
	Kind       settings.Kind
	Argv       []string
	// Warnings are those that the settings do not have.
	Warnings []string
	// Guarded is for presentation.SandboxWarnings.
	Guarded []string
}

// Open connects to the window that path names, in the background. It returns nil
// if there is no path.
func Open(stateDir, path string) *Report {
	if path == "" {
		return nil
	}
	return &Report{window: window.Dial(stateDir, path), begun: make(chan struct{})}
}

// Begin tells that the session has started, and then what happens to it. It does
// not wait. held is printed if there is no window; nil if nothing is held.
func (r *Report) Begin(about Session, held *Held) {
	if r == nil {
		return
	}
	r.about = about
	outcome := about.Running.Outcome()
	warnings := slices.Concat(about.Warnings, about.Compiled.Warnings,
		about.Compiled.Exposures(presentation.ProtectsExistingPaths(outcome)),
		presentation.SandboxWarnings(about.Compiled, outcome, about.Guarded))
	started := window.FromShell{Started: &window.Started{
		Kind: protocol.Kind(about.Kind), PID: about.Running.PID(), Argv: about.Argv, Cwd: about.Cwd,
		ProjectDir: about.ProjectDir, PolicyID: about.PolicyID,
		Sandbox:  presentation.Sandbox(about.Compiled.Policy.Restricted, outcome, warnings),
		Tracking: presentation.Tracking(outcome),
	}}
	go func() {
		defer close(r.begun)
		if r.send(started) {
			held.Drop()
		} else {
			held.Pass()
		}
	}()
	about.Running.Follow(r)
}

func (r *Report) send(message window.FromShell) bool {
	sent := !r.lost.Load() && r.window.Send(message)
	if !sent {
		r.lost.Store(true)
	}
	return sent
}

// Alarm tells what happened to a protected path.
func (r *Report) Alarm(alarm spawn.Alarm) {
	<-r.begun
	denied := presentation.Alarm("", alarm)
	r.send(window.FromShell{Denied: &denied})
}

// Denied tells what was refused, and the setting that would allow it.
func (r *Report) Denied(denial spawn.Denial) {
	<-r.begun
	if r.lost.Load() {
		return
	}
	// Without a suggestion if none can be found.
	suggestion, _ := presentation.Suggest(r.about.Store.Snapshot(r.about.ProjectDir), r.about.Kind, denial)
	denied := presentation.Denial("", denial, suggestion)
	r.send(window.FromShell{Denied: &denied})
}

// Reached tells that a limit was reached.
func (r *Report) Reached(limit spawn.Reached) {
	<-r.begun
	reached := presentation.LimitReached("", limit)
	r.send(window.FromShell{Limit: &reached})
}

// Ask asks the user in the window; the decision is "" if ctx ends before. It returns
// false if that is not possible.
func (r *Report) Ask(ctx context.Context, question protocol.RequestAccessParams) (protocol.Decision, bool) {
	if r == nil {
		return "", false
	}
	select {
	case <-r.begun:
	case <-ctx.Done():
		return "", true
	}
	if r.lost.Load() {
		return "", false
	}
	return r.window.Ask(ctx, question)
}

// Log writes a line into the editor's log. It returns false if that is not
// possible.
func (r *Report) Log(line string) bool { return r != nil && r.send(window.FromShell{Log: line}) }

// End tells how the session has ended, and reports whether the window was told
// everything.
func (r *Report) End(exit spawn.Exit, hints []string) bool {
	if r == nil {
		return false
	}
	<-r.begun
	status := protocol.ExitStatus{ExitCode: &exit.Code}
	if exit.Signal != 0 {
		name := unix.SignalName(exit.Signal)
		status = protocol.ExitStatus{Signal: &name}
	}
	told := r.send(window.FromShell{Ended: &window.Ended{
		Status: status, Hints: hints, Review: presentation.Findings(r.about.Running.Findings()),
	}})
	r.window.Close()
	return told
}
