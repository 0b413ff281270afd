package main

import (
	"context"
	"os"
	"os/signal"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/display"
	"github.com/sandbox-sidecar/sandbox-sidecar/presentation"
	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings"
	"github.com/sandbox-sidecar/sandbox-sidecar/spawn"
)

// asker asks the user on the controlling terminal, where on_denied is "ask".
type asker struct {
	store      *settings.Store
	projectDir string
	kind       settings.Kind
	runs       chan struct{}     // closed once command is set
	command    *spawn.Foreground // who is asked about

	mu sync.Mutex // one question at a time
}

// started tells which command the questions are about. Until then they wait.
func (a *asker) started(command *spawn.Foreground) {
	a.command = command
	close(a.runs)
}

// ask waits for an answer. Whatever keeps the question from being read and
// answered is a no. The command stands still meanwhile: it can neither paint
// over the question nor read what is typed.
func (a *asker) ask(ctx context.Context, denial spawn.Denial) spawn.Answer {
	a.mu.Lock()
	defer a.mu.Unlock()
	select {
	case <-a.runs:
	case <-ctx.Done():
	}
	if ctx.Err() != nil {
		return spawn.AnswerDeny
	}
	question, suggestion, may := presentation.Question(a.store.Snapshot(a.projectDir), a.kind, denial)
	if !may {
		return spawn.AnswerDeny
	}
	// The runtime's poller ends a read when the time is over.
	terminal, err := os.OpenFile("/dev/tty", os.O_RDWR|unix.O_NONBLOCK, 0)
	if err != nil {
		return spawn.AnswerDeny
	}
	defer terminal.Close()
	if !conversable(terminal) {
		return spawn.AnswerDeny
	}
	ctx, stop := interruptible(ctx)
	defer stop()
	resume, err := a.command.Pause(ctx)
	if err != nil {
		display.Fprintf(os.Stderr, "sandbox-sidecar: refused without a question: %v\n", err)
		return spawn.AnswerDeny
	}
	defer func() {
		if err := resume(); err != nil {
			display.Fprintf(os.Stderr, "sandbox-sidecar: %v\n", err)
		}
	}()
	if !conversable(terminal) { // until it stood still it could change that
		return spawn.AnswerDeny
	}
	lines := []string{question.Message}
	if question.Hint != "" {
		lines = append(lines, "note: "+question.Hint)
	}
	talk := dialogue{ctx: ctx, terminal: terminal, plain: !paints(os.Getenv("TERM"))}
	decision := protocol.DecisionDeny
	var answer spawn.Answer
	talk.hold(func() {
		decision = talk.ask(lines, question.Choices)
		answer, err = presentation.CarryOut(a.store, a.projectDir, suggestion, decision)
		if err != nil {
			talk.say("allowed for this session alone: %v", err)
		} else if file := a.writtenTo(decision, suggestion); file != "" {
			talk.say("added %s to %q in %s", display.Quote(suggestion.Value), suggestion.Key, display.Quote(file))
		}
	})
	return answer
}

// writtenTo is the file that a decision was written into; empty where it was
// not.
func (a *asker) writtenTo(decision protocol.Decision, suggestion settings.Suggestion) string {
	if decision != protocol.DecisionProject && decision != protocol.DecisionUser {
		return ""
	}
	return a.store.Snapshot(a.projectDir).WrittenTo(settings.Scope(decision), suggestion)
}

// interruptible returns a context that the keys and signals end too that would
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

// conversable reports whether a question can be read and answered: our process
// group has the terminal (an interactive shell inside gives it to a group of
// its own, and who reads from behind is stopped), and no program has taken the
// keyboard for itself, as editors do.
func conversable(terminal *os.File) bool {
	raw, err := terminal.SyscallConn()
	if err != nil {
		return false
	}
	is := false
	err = raw.Control(func(fd uintptr) {
		foreground, err := unix.IoctlGetInt(int(fd), unix.TIOCGPGRP)
		is = err == nil && foreground == unix.Getpgrp() && readsLines(int(fd))
	})
	return err == nil && is
}

// readsLines reports whether a terminal gathers what is typed into lines, and
// shows it.
func readsLines(fd int) bool {
	termios, err := unix.IoctlGetTermios(fd, getTermios)
	return err == nil && termios.Lflag&unix.ICANON != 0
}
