//go:build unix

package main

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"os/signal"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/agents/acp"
	"github.com/sandbox-sidecar/sandbox-sidecar/agents/mcp"
	"github.com/sandbox-sidecar/sandbox-sidecar/agents/runner"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings"
)

// serveMCP serves tools to an agent.
func serveMCP(flags *flagSet, args []string) error {
	project := addProjectFlags(flags, settings.KindTool)
	if err := parseNone(flags, args); err != nil {
		return err
	}
	return project.serveAgent(flags, func(ctx context.Context, r *runner.Runner) error {
		return mcp.New(versionName(), r).Serve(ctx, os.Stdin, os.Stdout)
	})
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
	printDiagnostics(stderr, snapshot, snapshot.Compile(kind).Diagnostics)
	// The handler prevents SIGPIPE, after a write to an agent that is gone, from
	// ending this process before it has killed the sessions.
	signal.Notify(make(chan os.Signal, 1), unix.SIGPIPE)
	logger := slog.New(plainLog{})
	reserveThreads(endingThreads + answeringThreads())
	tracker := openTracker(logger)
	ctx, stop := terminated()
	defer stop()
	ctx, stopUnread := untilUnread(ctx)
	defer stopUnread()
	err = serve(ctx, &runner.Runner{
		Store: store, Spawner: newSpawner(tracker, logger), Project: snapshot.ProjectDir(), Kind: kind, Env: os.Environ(),
	})
	if ended := signalled(0); errors.As(context.Cause(ctx), &ended) {
		err = exitStatus(128 + int(ended))
	}
	closeWatches(tracker)
	if closeErr := tracker.Close(); closeErr != nil {
		logger.Error("processes of sessions may be left", "error", closeErr)
	}
	return err
}
