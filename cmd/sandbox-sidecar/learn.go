package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"

	"github.com/google/uuid"

	"github.com/sandbox-sidecar/sandbox-sidecar/display"
	"github.com/sandbox-sidecar/sandbox-sidecar/fsguard"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/toolchain"
	"github.com/sandbox-sidecar/sandbox-sidecar/spawn"
)

// learn runs a command to find out which settings it needs. What it reads and
// executes beyond those that hold is let through, but for credentials; what it
// would change outside stays refused, as do sockets and the network. All of it
// goes into the block that is printed.
func learn(args []string) error {
	flags := newFlags("learn", "learn [flags] -- CMD [ARG…]\n\n"+
		"Runs CMD. What it reads and executes beyond the settings is let through and noted, but for credentials. What it "+
		"would write outside of\n"+
		"the project, sockets and a network that is off stay refused, and are noted too: where CMD fails for that, put "+
		"the printed settings in\n"+
		"and learn again. Unix sockets that are refused are seen below Linux 7.1 alone. The settings are printed behind "+
		"what CMD prints.\n")
	project := addProjectFlags(flags, settings.KindTool)
	output := flags.String("o", "", "file to write the settings to (default: standard output)")
	if err := parseCommand(flags, args); err != nil {
		return err
	}
	store, snapshot, kind, err := project.open(flags)
	if err != nil {
		return err
	}
	store.Close()
	compiled := snapshot.Compile(kind)
	printRemarks(os.Stderr, snapshot, compiled.Diagnostics)
	if err := inDoubt(compiled.Doubt); err != nil {
		return err
	}
	l := &lesson{user: project.settings, project: project.project, kind: kind, values: map[string]any{"enabled": true},
		reads: map[string]bool{}}
	l.begin(snapshot.Merged())
	exit, err := l.attend(flags.Args())
	if err != nil {
		return err
	}
	text, notes, err := l.block()
	if err != nil {
		return err
	}
	for _, note := range notes {
		display.Fprintf(os.Stderr, "sandbox-sidecar: not allowed by these settings: %s\n", note)
	}
	if exit != (spawn.Exit{}) {
		fmt.Fprintln(os.Stderr, "sandbox-sidecar: the command failed; it may need more once it has these settings: learn "+
			"again then")
	}
	if *output != "" {
		if err := os.WriteFile(*output, text, 0o644); err != nil {
			return fmt.Errorf("write settings: %w", err)
		}
		return statusOf(exit)
	}
	if _, err := os.Stdout.Write(text); err != nil {
		return fmt.Errorf("write settings: %w", err)
	}
	return statusOf(exit)
}

// lesson is one run of learn.
type lesson struct {
	user, project string // settings file, directory
	kind          settings.Kind
	values        map[string]any // the block so far

	mu    sync.Mutex // guards what follows, until the command has ended
	reads map[string]bool
	needs []need
}

// need is one access that the settings do not grant.
type need struct {
	access, target string
	program        string // who needs it, where it is about a name in a directory
}

// begin takes over what the settings grant already beside the defaults, so that
// the block says all that it takes.
func (l *lesson) begin(merged settings.Sandbox) {
	for _, key := range grantingKeys {
		if list := listOf(merged, key); len(list) > 0 {
			l.values[key] = list
		}
	}
	if !*merged.AllowNetwork {
		l.values["allow_network"] = false
	}
}

// grantingKeys are the lists that the block may extend.
var grantingKeys = []string{
	"toolchains", "allowed_unix_sockets", "additional_executable_paths", "additional_read_only_paths",
	"additional_read_write_paths",
}

// attend runs the command and notes what it needs.
func (l *lesson) attend(command []string) (spawn.Exit, error) {
	store, snapshot, err := l.open()
	if err != nil {
		return spawn.Exit{}, err
	}
	defer store.Close()
	compiled := snapshot.Compile(l.kind)
	if compiled.NoAnswer != "" {
		return spawn.Exit{}, &spawn.Error{Attempt: "look at the project", Path: compiled.NoAnswer, Cause: fsguard.ErrNoAnswer}
	}
	if err := compiled.MakeDirs(); err != nil {
		display.Fprintf(os.Stderr, "sandbox-sidecar: warning: %v\n", err)
	}
	// Learning without a sandbox would be to run it, and what is ignored could
	// not be learnt.
	compiled.Policy.OnUnavailable, compiled.Policy.OnDenied = policy.Refuse, policy.Report
	program, err := exec.LookPath(command[0])
	if err != nil {
		return spawn.Exit{}, fmt.Errorf("find program: %w", err)
	}
	if program, err = filepath.Abs(program); err != nil {
		return spawn.Exit{}, fmt.Errorf("find program: %w", err)
	}
	dir, err := workingDir()
	if err != nil {
		return spawn.Exit{}, fmt.Errorf("find working directory: %w", err)
	}
	logger, err := newLogger("warn", "text")
	if err != nil {
		return spawn.Exit{}, err
	}
	tracker := openTracker(logger)
	defer tracker.Close()
	secrets := snapshot.Secrets()
	places, err := l.programPlaces(program, secrets)
	if err != nil {
		return spawn.Exit{}, err
	}
	running, err := newSpawner(tracker, logger).Foreground(context.Background(), spawn.Request{
		ID: uuid.NewString(), Policy: compiled.Policy, Program: program, Argv: command, Env: os.Environ(), Dir: dir, Learn: places,
		Ask: func(_ context.Context, d spawn.Denial) spawn.Answer { return l.opening(d, secrets) },
	})
	if err != nil {
		return spawn.Exit{}, err
	}
	exit, err := running.Wait()
	if err != nil {
		display.Fprintf(os.Stderr, "sandbox-sidecar: %v\n", err)
	}
	denials, missed := running.Denials()
	if missed > 0 {
		display.Fprintf(os.Stderr, "sandbox-sidecar: warning: %d accesses were too many to be noted\n", missed)
	}
	l.note(program, denials)
	return exit, nil
}

// programPlaces are where programs may be executed from to see what comes of
// it: the directories of PATH, that of the program itself, and those of every
// toolchain.
func (l *lesson) programPlaces(program string, secrets func(string) string) ([]string, error) {
	store, snapshot, err := (&lesson{user: l.user, project: l.project, kind: l.kind,
		values: map[string]any{"enabled": true, "toolchains": toolchain.Names()}}).open()
	if err != nil {
		return nil, err
	}
	defer store.Close()
	places := []string{}
	compiled := snapshot.Compile(l.kind)
	for _, rule := range compiled.Policy.Rules {
		if rule.Origin.Entry != "" && rule.Access.Has(policy.Execute) {
			places = append(places, rule.Path)
		}
	}
	dirs := append(filepath.SplitList(os.Getenv("PATH")), filepath.Dir(program))
	if real, err := filepath.EvalSymlinks(program); err == nil {
		dirs = append(dirs, filepath.Dir(real))
	}
	for _, dir := range dirs {
		if real, err := filepath.EvalSymlinks(dir); err == nil && filepath.IsAbs(real) && secrets(real) == "" {
			places = append(places, real)
		}
	}
	return places, nil
}

// opening lets what is only read through.
func (l *lesson) opening(d spawn.Denial, secrets func(string) string) spawn.Answer {
	if d.Access != "read" || dispensable(d.Target) || secrets(d.Target) != "" {
		return spawn.AnswerDeny
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.reads[d.Target] = true
	return spawn.AnswerOnce
}

// dispensable are readings that programs go on without: what the kernel tells
// of the machine.
func dispensable(target string) bool {
	return policy.Contains("/sys", target) || policy.Contains("/proc", target)
}

// bytecode reports whether a name is for what Python makes of the modules that
// it loads. It goes on where it cannot (importlib ignores the error), and to
// let it would be to let sessions write beside the programs that run outside.
func bytecode(target string) bool {
	return strings.Contains(target+"/", "/__pycache__/")
}

// note gathers everything that was needed. The program itself is looked up and
// executed by the sidecar, and is no denial.
func (l *lesson) note(program string, denials []spawn.Denial) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.needs = append(l.needs, need{access: "execute", target: program})
	names := map[string]int{}
	for _, d := range denials {
		access, target := string(d.Access), d.Target
		switch {
		case access == "read" && dispensable(target), access == "create" && bytecode(target):
			continue
		case access == "create" || access == "remove":
			// Names belong to their directory, unless they are for a tool: of a
			// thousand in one, some say enough.
			if names[filepath.Dir(target)]++; names[filepath.Dir(target)] > mostNames {
				continue
			}
			l.needs = append(l.needs, need{access: access, target: target, program: d.Process})
			continue
		}
		l.needs = append(l.needs, need{access: access, target: target})
	}
	for target := range l.reads {
		l.needs = append(l.needs, need{access: "read", target: target})
	}
}

// mostNames bounds the names in one directory that are asked about.
const mostNames = 8

// open opens the settings with the block so far over them. The store is to be
// closed.
func (l *lesson) open() (*settings.Store, *settings.Snapshot, error) {
	layer, err := l.text()
	if err != nil {
		return nil, nil, err
	}
	store, err := settings.Open(settings.Options{UserPath: absoluteOr(l.user), Editor: layer, Env: os.Environ(),
		Guarded: program(), Once: true})
	if err != nil {
		return nil, nil, err
	}
	return store, store.Snapshot(l.project), nil
}

func absoluteOr(path string) string {
	if path == "" || strings.HasPrefix(path, "/") {
		return path
	}
	absolute, err := filepath.Abs(path)
	if err != nil {
		return path
	}
	return absolute
}
