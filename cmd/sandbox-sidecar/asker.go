//go:build unix

package main

import (
	"context"
	"os"
	"os/signal"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/cmd/sandbox-sidecar/report"
	"github.com/sandbox-sidecar/sandbox-sidecar/display"
	"github.com/sandbox-sidecar/sandbox-sidecar/presentation"
	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/explain"
	"github.com/sandbox-sidecar/sandbox-sidecar/spawn"
)

// asker asks the user if on_denied is "ask": in the editor's window, if there is
// one, else on the controlling terminal.
type asker struct {
	store      *settings.Store
	projectDir string
	kind       settings.Kind
	report     *report.Report    // nil if there is no window to ask in
	runs       chan struct{}     // closed once command is set
	command    *spawn.Foreground // the command that the questions are about

	mu sync.Mutex // one question at a time on the terminal
}

// started sets the command that the questions are about. Questions wait for it.
func (a *asker) started(command *spawn.Foreground) {
	a.command = command
	close(a.runs)
}

// ask waits for the user's answer. It denies if the question cannot be shown
// or answered.
func (a *asker) ask(ctx context.Context, denial spawn.Denial) spawn.Answer {
	select {
	case <-a.runs:
	case <-ctx.Done():
		return spawn.AnswerWithdrawn
	}
	if answer, asked := a.askWindow(ctx, denial); asked {
		return answer
	}
	return a.askTerminal(ctx, denial)
}

// askWindow asks in the editor's window. It returns false if that is not
// possible.
func (a *asker) askWindow(ctx context.Context, denial spawn.Denial) (answer spawn.Answer, asked bool) {
	snapshot := a.store.Snapshot
	if denial.Opened {
		snapshot = a.store.Recent // there are many of them
	}
	question, suggestion, may := presentation.Question(snapshot(a.projectDir), a.kind, denial)
	switch {
	case !may:
		return spawn.AnswerUnasked, true
	case denial.Opened:
		return spawn.AnswerDirectory, true
	}
	decision, asked := a.report.Ask(ctx, question)
	if !asked {
		return spawn.AnswerUnasked, false
	}
	answer, err := presentation.CarryOut(ctx, a.store, a.projectDir, question, suggestion, decision)
	if err != nil {
		a.report.Log(presentation.Unwritten(answer, denial.Target, err))
	}
	return answer, true
}

// askTerminal asks on the controlling terminal. The command is paused meanwhile,
// so that it can neither draw over the question nor read the answer.
func (a *asker) askTerminal(ctx context.Context, denial spawn.Denial) spawn.Answer {
	a.mu.Lock()
	defer a.mu.Unlock()
	if ctx.Err() != nil {
		return spawn.AnswerWithdrawn
	}
	// An earlier answer may have changed what is asked.
	question, suggestion, may := presentation.Question(a.store.Snapshot(a.projectDir), a.kind, denial)
	if !may {
		return spawn.AnswerUnasked
	}
	// O_NONBLOCK lets the runtime's poller end a read at its deadline.
	terminal, err := os.OpenFile("/dev/tty", os.O_RDWR|unix.O_NONBLOCK, 0)
	if err != nil {
		return spawn.AnswerUnasked
	}
	defer terminal.Close()
	if !canAsk(terminal) {
		return spawn.AnswerUnasked
	}
	ctx, stop := interruptible(ctx)
	defer stop()
	resume, err := a.command.Pause(ctx)
	if err != nil && ctx.Err() != nil {
		return spawn.AnswerWithdrawn
	}
	if err != nil {
		display.Fprintf(stderr, "sandbox-sidecar: denied without asking: %v\n", err)
		return spawn.AnswerUnasked
	}
	defer func() {
		if err := resume(); err != nil {
			display.Fprintf(stderr, "sandbox-sidecar: %v\n", err)
		}
	}()
	if !canAsk(terminal) { // until the pause the command could change that
		return spawn.AnswerUnasked
	}
	if ctx.Err() != nil { // an answer to another question has settled this one
		return spawn.AnswerWithdrawn
	}
	lines := []string{question.Message}
	if question.Hint != "" {
		lines = append(lines, "note: "+question.Hint)
	}
	if line := presentation.DirectoryLine(question); line != "" {
		lines = append(lines, "note: "+line)
	}
	talk := dialogue{ctx: ctx, terminal: terminal, plain: !hasEscapes(os.Getenv("TERM"))}
	var decision protocol.Decision
	var answer spawn.Answer
	talk.hold(func() {
		decision = talk.ask(lines, question.Choices)
		answer, err = presentation.CarryOut(ctx, a.store, a.projectDir, question, suggestion, decision)
		if err != nil {
			talk.print("%s", presentation.Unwritten(answer, denial.Target, err))
		} else if file := a.writtenTo(decision, suggestion); file != "" {
			talk.print("added %s to %q in %s", display.Quote(suggestion.Value), suggestion.Key, display.Quote(file))
		}
	})
	return answer
}

// writtenTo is the file that a decision was written to, or "".
func (a *asker) writtenTo(decision protocol.Decision, suggestion explain.Suggestion) string {
	if decision != protocol.DecisionProject && decision != protocol.DecisionUser {
		return ""
	}
	return settings.WrittenTo(a.store.Snapshot(a.projectDir), settings.Scope(decision), suggestion)
}

// interruptible returns a context that also ends on the keys and signals that
// end or stop a program.
func interruptible(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancel(ctx)
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, unix.SIGINT, unix.SIGQUIT, unix.SIGTSTP, unix.SIGTERM, unix.SIGHUP)
	go func() {
		select {
		case <-signals:
			cancel()
		case <-ctx.Done():
		}
	}()
	return ctx, func() {
		signal.Stop(signals)
		cancel()
	}
}

// canAsk reports whether the user can read and answer a question. This process
// group must be in the foreground: an interactive shell inside has a group of
// its own, and a background process that reads is stopped. The terminal must be
// in canonical mode, which editors leave.
func canAsk(terminal *os.File) bool {
	raw, err := terminal.SyscallConn()
	if err != nil {
		return false
	}
	is := false
	err = raw.Control(func(fd uintptr) {
		foreground, err := unix.IoctlGetInt(int(fd), unix.TIOCGPGRP)
		is = err == nil && foreground == unix.Getpgrp() && isCanonical(int(fd))
	})
	return err == nil && is
}

// isCanonical reports whether a terminal is in canonical mode: it hands out
// whole lines.
func isCanonical(fd int) bool {
	termios, err := unix.IoctlGetTermios(fd, getTermios)
	return err == nil && termios.Lflag&unix.ICANON != 0
}

func isTerminal(file *os.File) bool {
	_, err := unix.IoctlGetTermios(int(file.Fd()), getTermios)
	return err == nil
}

// hasColours reports whether colours may be written to a file: to a terminal,
// unless NO_COLOR is set (no-color.org) or the terminal knows none.
func hasColours(file *os.File) bool {
	return os.Getenv("NO_COLOR") == "" && hasEscapes(os.Getenv("TERM")) && isTerminal(file)
}
