//go:build unix

package main

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"os/signal"

	"golang.org/x/sys/unix"

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
	return project.serveAgent(flags, func(r *runner.Runner) error {
		ctx, stop := terminated()
		defer stop()
		ctx, stopUnread := untilUnread(ctx)
		defer stopUnread()
		err := mcp.New(versionName(), r).Serve(ctx, os.Stdin, os.Stdout)
		if ended := signalled(0); errors.As(context.Cause(ctx), &ended) {
			return exitStatus(128 + int(ended))
		}
		return err
	})
}

// serveAgent gives serve what starts commands in the project. All of them have
// ended when it returns. What is said to an agent is sandboxed is so whatever
// the settings say.
func (p *projectFlags) serveAgent(flags *flagSet, serve func(*runner.Runner) error) error {
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
	tracker := openTracker(logger)
	err = serve(&runner.Runner{
		Store: store, Spawner: newSpawner(tracker, logger), Project: snapshot.ProjectDir(), Kind: kind, Env: os.Environ(),
	})
	closeWatches(tracker)
	return errors.Join(err, tracker.Close())
}
