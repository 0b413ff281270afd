//go:build unix

// Package runner starts what agents ask for: a command in a session whose
// streams are pipes. It says afterwards what was refused, and which setting
// would allow that.
//
// A session of [Runner] is always confined. An agent is told that its commands
// are sandboxed, so a setting that leaves the sandbox off is an error here.
package runner

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/sandbox-sidecar/sandbox-sidecar/display"
	"github.com/sandbox-sidecar/sandbox-sidecar/presentation"
	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
	"github.com/sandbox-sidecar/sandbox-sidecar/session"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings"
	"github.com/sandbox-sidecar/sandbox-sidecar/spawn"
)

// Runner starts commands in one project.
type Runner struct {
	Store   *settings.Store
	Spawner *spawn.Spawner
	// Project is the project directory, absolute.
	Project string
	Kind    settings.Kind
	// Env holds "NAME=value" entries, before the policy's filter.
	Env []string
	// Guarded is for presentation.SandboxWarnings.
	Guarded []string
}

// Command is what to run.
type Command struct {
	Argv []string
	// Dir is the working directory, absolute.
	Dir string
	// Files are standard input, output and errors. The caller closes them.
	Files [3]*os.File
	// Ask, if it is not nil, puts a question to the user, if the settings say
	// that denials are asked about. It returns "" if ctx ends before the answer.
	Ask func(ctx context.Context, question protocol.RequestAccessParams) protocol.Decision
}

// Running is a command that was started.
type Running struct {
	*spawn.Background
	runner          *Runner
	warnings, notes []string
}

// Start starts a command. On an error nothing runs.
func (r *Runner) Start(ctx context.Context, c Command) (*Running, error) {
	snapshot := r.Store.Snapshot(r.Project)
	admitted, err := session.New(r.Store, snapshot, session.Wish{
		Kind: r.Kind, Confined: true, Certain: true, Dir: c.Dir,
	}).Admit()
	var doubtful *session.DoubtError
	switch {
	case errors.As(err, &doubtful):
		return nil, fmt.Errorf("not started: the user must fix a settings file first: %s:%d",
			display.Quote(doubtful.Doubt.File), doubtful.Doubt.Line)
	case err != nil:
		return nil, err
	}
	request := spawn.Request{Env: r.Env, Dir: c.Dir, Tool: true, Program: c.Argv[0], Argv: c.Argv}
	if c.Ask != nil {
		request.Ask = func(ctx context.Context, d spawn.Denial) spawn.Answer { return r.ask(ctx, c, d) }
	}
	background, err := session.Start(admitted, request, func(request spawn.Request) (*spawn.Background, error) {
		return r.Spawner.Background(ctx, request, c.Files)
	})
	if err != nil {
		return nil, err
	}
	outcome := background.Outcome()
	if !outcome.Confined {
		background.Kill() // refused above; if that ever changes, nothing may go on
		return nil, errors.Join(session.ErrOff, outcome.Unconfinable)
	}
	return &Running{
		Background: background, runner: r, notes: admitted.Told,
		warnings: slices.Concat(admitted.Warnings, admitted.Unmade,
			admitted.Exposures(presentation.ProtectsExistingPaths(outcome)),
			presentation.SandboxWarnings(admitted.Result, outcome, r.Guarded)),
	}, nil
}

// ask puts a denial to the user. It denies unless the answer is one of the
// choices that were offered.
func (r *Runner) ask(ctx context.Context, c Command, denial spawn.Denial) spawn.Answer {
	snapshot := r.Store.Snapshot
	if denial.Opened {
		snapshot = r.Store.Recent // there are many of them
	}
	question, suggestion, may := presentation.Question(snapshot(r.Project), r.Kind, denial)
	switch {
	case ctx.Err() != nil:
		return spawn.AnswerWithdrawn
	case !may:
		return spawn.AnswerUnasked
	case denial.Opened:
		return spawn.AnswerDirectory
	}
	// What cannot be written to the settings is allowed in this session.
	answer, _ := presentation.CarryOut(ctx, r.Store, r.Project, question, suggestion, c.Ask(ctx, question))
	return answer
}

// Refused is something that a session was refused.
type Refused struct {
	// Message says what was attempted, on what, by which program and how often.
	Message string
	// ToAllow is what the user would have to do to allow it, or "".
	ToAllow string
	// Hint is what to know about it, or "".
	Hint string
}

// mostRefused bounds a list of refusals.
const mostRefused = 20

// Refused lists what the session was refused so far, and how much more there
// was. What is known is left out; known may be nil.
func (r *Running) Refused(known func(spawn.Denial) bool) (list []Refused, more int) {
	denials, more := r.Denials()
	if known != nil {
		denials = slices.DeleteFunc(denials, known)
	}
	if len(denials) > mostRefused {
		more += len(denials) - mostRefused
		denials = denials[:mostRefused]
	}
	snapshot := r.runner.Store.Snapshot(r.runner.Project)
	for _, denial := range denials {
		refused := Refused{Message: presentation.DenialLine(denial)}
		suggestion, err := presentation.Suggest(snapshot, r.runner.Kind, denial)
		if err == nil {
			refused.Hint = display.Line(suggestion.Hint)
		}
		if err == nil && suggestion.Key != "" {
			refused.ToAllow = suggestion.InstructionInFull()
		}
		list = append(list, refused)
	}
	return list, more
}

// Changed lists what changed during the session that programs outside act on.
// The session must have ended.
func (r *Running) Changed() []string {
	var lines []string
	for _, alarm := range r.Alarms() {
		lines = append(lines, presentation.AlarmLine(alarm))
	}
	for _, finding := range r.Findings() {
		lines = append(lines, presentation.FindingLine(finding))
	}
	return lines
}

// Limits lists the limits that the session has reached, as far as the kernel
// tells. The session must have ended.
func (r *Running) Limits() []string {
	var lines []string
	for _, limit := range r.Background.Limits() {
		lines = append(lines, presentation.LimitLine(limit))
	}
	return lines
}

// Warnings are what the user must know about the session.
func (r *Running) Warnings() []string { return display.Lines(r.warnings) }

// Notes are shown to the user once.
func (r *Running) Notes() []string { return display.Lines(r.notes) }
