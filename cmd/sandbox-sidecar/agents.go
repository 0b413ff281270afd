//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/agents/acp"
	"github.com/sandbox-sidecar/sandbox-sidecar/agents/runner"
	"github.com/sandbox-sidecar/sandbox-sidecar/cmd/sandbox-sidecar/ending"
	"github.com/sandbox-sidecar/sandbox-sidecar/fsguard"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings"
)

// mcpProgram is the program of the command mcp. It holds what this one must not:
// the kit of MCP, with a client and a server of HTTP.
const mcpProgram = "sandbox-sidecar-mcp"

// serveMCP becomes the program that serves tools to an agent. That is the one
// beside this program: a project could put another into PATH.
func serveMCP(flags *flagSet, args []string) error {
	project := addProjectFlags(flags, settings.KindTool)
	if err := parseNone(flags, args); err != nil {
		return err
	}
	if inSession() {
		return errInSession
	}
	self, err := executable()
	if err != nil {
		return err
	}
	program := beside(self, mcpProgram)
	if info, err := fsguard.Stat(program); err != nil || !info.Mode().IsRegular() {
		return &absentError{program}
	}
	project.sandbox = true
	store, snapshot, kind, err := project.open(flags)
	if err != nil {
		return err
	}
	printDiagnostics(stderr, snapshot, snapshot.Diagnostics())
	store.Close()
	argv := []string{mcpProgram, "--sidecar", self, "--project", snapshot.ProjectDir, "--kind", string(kind)}
	if project.settings != "" {
		file, err := filepath.Abs(project.settings)
		if err != nil {
			return fmt.Errorf("find settings file: %w", err)
		}
		argv = append(argv, "--settings", file)
	}
	return fmt.Errorf("start %s: %w", quoted(program), unix.Exec(program, argv, os.Environ()))
}

// absentError says that a program of this project is not installed.
type absentError struct{ program string }

func (e *absentError) Error() string {
	return fmt.Sprintf("not started: there is no %s in %s", filepath.Base(e.program), quoted(filepath.Dir(e.program)))
}

func (e *absentError) hint() string {
	return "go install github.com/sandbox-sidecar/sandbox-sidecar/cmd/" + filepath.Base(e.program) + "@latest"
}

// serveACP runs an agent for an editor.
func serveACP(flags *flagSet, args []string) error {
	project := addProjectFlags(flags, settings.KindTool)
	if err := parseCommand(flags, args); err != nil {
		return err
	}
	return project.serveAgent(flags, func(ctx context.Context, r *runner.Runner) error {
		exit, err := acp.Serve(ctx, r, flags.Args(), acp.Streams{In: os.Stdin, Out: os.Stdout, Log: os.Stderr})
		if err != nil {
			return err
		}
		return statusOf(exit)
	})
}

// errInSession means that a sandbox confines this process, which cannot make
// another.
var errInSession = errors.New("not started: it runs in a sandboxed session, where all commands are confined")

// serveAgent gives serve what starts commands in the project. All of them have
// ended when it returns. What is said to an agent is sandboxed is so whatever
// the settings say.
func (p *projectFlags) serveAgent(flags *flagSet, serve func(context.Context, *runner.Runner) error) error {
	if inSession() {
		return errInSession
	}
	p.sandbox, p.serves = true, true
	store, snapshot, kind, err := p.open(flags)
	if err != nil {
		return err
	}
	defer store.Close()
	printDiagnostics(stderr, snapshot, snapshot.Diagnostics())
	ending.KeepOnPipe()
	logger := slog.New(plainLog{})
	reserveThreads(endingThreads + answeringThreads())
	tracker := openTracker(logger)
	ctx, stop := ending.BySignal()
	defer stop()
	ctx, stopUnread := ending.Unread(ctx)
	defer stopUnread()
	spawner := newSpawner(tracker, logger)
	stopListening := listen(tracker, spawner, logger, nil)
	err = serve(ctx, &runner.Runner{
		Store: store, Spawner: spawner, Project: snapshot.ProjectDir, Kind: kind,
		Env: os.Environ(), Guarded: guarded(),
	})
	if ended := ending.Signalled(0); errors.As(context.Cause(ctx), &ended) {
		err = exitStatus(ended.Status())
	}
	stopListening()
	closeWatches(tracker)
	if closeErr := tracker.Close(); closeErr != nil {
		logger.Error("processes of sessions may be left", "error", closeErr)
	}
	return err
}
