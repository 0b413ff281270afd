package main

import (
	"context"
	"fmt"
	"os"

	"github.com/sandbox-sidecar/sandbox-sidecar/display"
	"github.com/sandbox-sidecar/sandbox-sidecar/fsguard"
	"github.com/sandbox-sidecar/sandbox-sidecar/presentation"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings"
	"github.com/sandbox-sidecar/sandbox-sidecar/spawn"
)

// execute runs a command under the settings in the caller's own terminal, and
// returns its exit status.
func execute(flags *flagSet, args []string) error {
	project := addProjectFlags(flags, settings.KindTerminal)
	if err := parseCommand(flags, args); err != nil {
		return err
	}
	logger, err := newLogger("warn", "text")
	if err != nil {
		return err
	}
	start := newHeadStart(logger)
	defer start.close()
	store, snapshot, kind, err := project.open(flags)
	if err != nil {
		return err
	}
	defer store.Close()
	compiled := snapshot.Compile(kind)
	printDiagnostics(stderr, snapshot, compiled.Diagnostics)
	if err := inDoubt(compiled.Doubt); err != nil {
		return err
	}
	if compiled.NoAnswer != "" {
		return &spawn.Error{Attempt: "check the project", Path: compiled.NoAnswer, Cause: fsguard.ErrNoAnswer}
	}
	if err := compiled.MakeDirs(); err != nil {
		compiled.Risks = append(compiled.Risks, err.Error())
	}
	for _, warning := range compiled.Risks {
		display.Fprintf(stderr, "sandbox-sidecar: warning: %s\n", warning)
	}
	if note := compiled.ProxyNote(); note != "" && store.FirstTime(settings.ProxyNoteName) {
		display.Fprintf(os.Stderr, "sandbox-sidecar: note: %s\n", note)
	}
	if !compiled.Policy.Restricted {
		// The explanation names the setting; it is the same for every access.
		if x, err := snapshot.Explain(kind, settings.AttemptConnect, ""); err == nil {
			warnUnsandboxed(x.Reason, x.Hint)
		}
	}
	dir, err := workingDir()
	if err != nil {
		return fmt.Errorf("find working directory: %w", err)
	}
	command := flags.Args()
	asker := &asker{store: store, projectDir: snapshot.ProjectDir(), kind: kind, runs: make(chan struct{})}
	running, err := start.take().Start(context.Background(), spawn.Request{
		ID: spawn.NewID(), Policy: compiled.Policy, Program: command[0], Argv: command, Env: os.Environ(), Dir: dir,
		Ask: asker.ask,
	})
	if err != nil {
		return presentation.NameSetting(err, snapshot, kind, dir)
	}
	asker.started(running)
	for _, warning := range compiled.Exposures(presentation.ProtectsExistingPaths(running.Outcome())) {
		display.Fprintf(stderr, "sandbox-sidecar: warning: %s\n", warning)
	}
	if cause := running.Outcome().Unconfinable; cause != nil {
		warnUnsandboxed("not sandboxed: "+cause.Error(), "")
	}
	exit, err := running.Wait()
	if err != nil {
		display.Fprintf(stderr, "sandbox-sidecar: %v\n", err)
	}
	listChanges(stderr, running.Alarms(), running.Findings())
	summarise(stderr, running, store.Snapshot(snapshot.ProjectDir()), kind)
	return statusOf(exit)
}

// warnUnsandboxed prints a warning, in yellow on a terminal, and its hint.
func warnUnsandboxed(text, hint string) {
	colours := hasColours(os.Stderr)
	if colours {
		fmt.Fprint(os.Stderr, "\x1b[33m")
	}
	display.Fprintf(stderr, "sandbox-sidecar: %s\n", text)
	if colours {
		fmt.Fprint(os.Stderr, "\x1b[0m")
	}
	if hint != "" {
		display.Fprintf(stderr, "sandbox-sidecar: hint: %s\n", hint)
	}
}

// statusOf is the exit status that reports how a command ended.
func statusOf(exit spawn.Exit) exitStatus {
	if exit.Signal != 0 {
		return exitStatus(128 + int(exit.Signal)) // as shells report it
	}
	return exitStatus(exit.Code)
}
