//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"

	"github.com/sandbox-sidecar/sandbox-sidecar/display"
	"github.com/sandbox-sidecar/sandbox-sidecar/fsguard"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
	"github.com/sandbox-sidecar/sandbox-sidecar/presentation"
	"github.com/sandbox-sidecar/sandbox-sidecar/session"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/compile"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/toolchain"
	"github.com/sandbox-sidecar/sandbox-sidecar/spawn"
)

// learn runs a command to find out which settings it needs. It allows what the
// command reads and executes beyond the settings, except credentials. Writes
// outside of the project, sockets and the network stay refused. It prints the
// settings that grant all of it.
func learn(flags *flagSet, args []string) error {
	project := addProjectFlags(flags, settings.KindTool)
	file := flags.String("o", "", "`FILE`: where to write the settings, instead of stdout; a new file")
	if err := parseCommand(flags, args); err != nil {
		return err
	}
	if inSession() {
		return errInSession // it would learn what this session is refused, and nothing else
	}
	if err := isNew(*file); err != nil {
		return err
	}
	store, snapshot, kind, err := project.open(flags)
	if err != nil {
		return err
	}
	store.Close()
	printDiagnostics(stderr, snapshot, snapshot.Diagnostics())
	l := &learner{
		user: project.settings, project: project.project, kind: kind, values: map[string]any{"enabled": true},
		reads: map[string]bool{},
	}
	l.inherit(snapshot)
	exit, err := l.run(flags.Args())
	if err != nil {
		return err
	}
	text, notes, err := l.block()
	if err != nil {
		return err
	}
	for _, note := range notes {
		display.Fprintf(stderr, "sandbox-sidecar: not allowed by these settings: %s\n", note)
	}
	for _, care := range l.careful {
		display.Fprintf(stderr, "sandbox-sidecar: before you add these settings: %s\n", care)
	}
	if exit != (spawn.Exit{}) {
		fmt.Fprintln(stderr, "sandbox-sidecar: the command failed and may need more: add these settings "+
			"and learn again")
	}
	if *file != "" {
		if err := writeNew(*file, text); err != nil {
			return err
		}
		return statusOf(exit)
	}
	if _, err := output.Write(text); err != nil {
		return fmt.Errorf("write settings: %w", err)
	}
	return statusOf(exit)
}

// isNew refuses a file that exists, before the command runs: what is in it would
// be lost.
func isNew(file string) error {
	if file == "" {
		return nil
	}
	if _, err := fsguard.Lstat(file); err == nil {
		return fmt.Errorf("write settings: %s exists, and learn replaces no file; name a new one, or leave out -o",
			display.Quote(file))
	}
	return nil
}

// writeNew writes settings to a file that does not exist.
func writeNew(file string, text []byte) error {
	out, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return fmt.Errorf("write settings: %w", err)
	}
	_, err = out.Write(text)
	if err = errors.Join(err, out.Close()); err != nil {
		return fmt.Errorf("write settings: %w", err)
	}
	return nil
}

// learner is one run of learn.
type learner struct {
	user, project string // settings file, directory
	kind          settings.Kind
	values        map[string]any // the settings so far, by key
	careful       []string       // what to know of the settings so far

	mu    sync.Mutex // guards the fields below until the command has ended
	reads map[string]bool
	needs []need
}

// need is one access that the settings do not grant.
type need struct {
	access, target string
	program        string // that needs it, for names in a directory
	refused        string // what was refused, if no setting is about it
}

// inherit copies what the settings already grant beyond the defaults, so that
// the printed settings are complete.
func (l *learner) inherit(snapshot *compile.Snapshot) {
	merged := snapshot.MergedFor(l.kind)
	for _, key := range grantingKeys {
		if list := merged.List(key); len(list) > 0 {
			l.set(snapshot.KeyFor(l.kind, key), list)
		}
	}
	if !*merged.AllowNetwork {
		l.set(snapshot.KeyFor(l.kind, "allow_network"), false)
	}
}

// set sets a key of the block, or, as in "tool.toolchains", of one in it.
func (l *learner) set(key string, value any) {
	values := l.values
	if block, name, found := strings.Cut(key, "."); found {
		if _, is := values[block]; !is {
			values[block] = map[string]any{}
		}
		values, key = values[block].(map[string]any), name
	}
	values[key] = value
}

// grantingKeys are the lists that the settings may extend, and the exceptions
// from them.
var grantingKeys = []string{
	"allowed_hosts", "denied_hosts",
	"toolchains", "allowed_unix_sockets", "additional_executable_paths", "additional_read_only_paths",
	"additional_read_write_paths",
}

// run runs the command and records what it needs.
func (l *learner) run(command []string) (spawn.Exit, error) {
	store, snapshot, err := l.open()
	if err != nil {
		return spawn.Exit{}, err
	}
	defer store.Close()
	// Without a sandbox or reports of denials there is nothing to learn.
	here, _ := workingDir() // if there is none, the start says so
	plan := session.New(store, snapshot, session.Wish{
		Kind: l.kind, Confined: true, Certain: true, Reported: true, Dir: here,
	})
	admitted, err := plan.Admit()
	if err != nil {
		return spawn.Exit{}, inDoubt(err)
	}
	printWarnings(stderr, slices.Concat(plan.Risks, admitted.Unmade))
	printNotes(admitted.Told)
	program, err := exec.LookPath(command[0])
	if err != nil {
		return spawn.Exit{}, notFound(command[0], err)
	}
	if program, err = filepath.Abs(program); err != nil {
		return spawn.Exit{}, fmt.Errorf("find program: %w", err)
	}
	dir, err := workingDir()
	if err != nil {
		return spawn.Exit{}, fmt.Errorf("find working directory: %w", err)
	}
	logger := slog.New(plainLog{})
	reserveThreads(endingThreads)
	tracker := openTracker(logger)
	defer tracker.Close()
	secrets := snapshot.Secrets()
	places, err := l.programDirs(program, secrets)
	if err != nil {
		return spawn.Exit{}, err
	}
	running, err := session.Start(admitted, spawn.Request{
		Program: program, Argv: command, Env: os.Environ(), Dir: dir,
		Learn: places, Ask: func(_ context.Context, d spawn.Denial) spawn.Answer { return l.allowRead(d, secrets) },
	}, func(request spawn.Request) (*spawn.Foreground, error) {
		return newSpawner(tracker, logger).Foreground(context.Background(), request)
	})
	if err != nil {
		return spawn.Exit{}, err
	}
	printWarnings(stderr, plan.Exposures(presentation.ProtectsExistingPaths(running.Outcome())))
	printUnheld(stderr, &plan.Result, running.Outcome(), false)
	printLost(stderr, running.Outcome(), false)
	exit, err := running.Wait()
	if err != nil {
		display.Fprintf(stderr, "sandbox-sidecar: %v\n", err)
	}
	for _, limit := range running.Limits() {
		display.Fprintf(stderr, "sandbox-sidecar: note: %s\n", presentation.LimitLine(limit))
	}
	denials, missed := running.Denials()
	if missed > 0 {
		display.Fprintf(stderr, "sandbox-sidecar: warning: accesses that were not recorded: %d\n", missed)
	}
	l.record(program, denials)
	return exit, nil
}

// notFound is the error that exec returns for the same command.
func notFound(name string, err error) error {
	var cause *exec.Error
	if errors.As(err, &cause) {
		err = cause.Err
	}
	missing := errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist)
	var path *fs.PathError
	if errors.As(err, &path) {
		err = path.Err
	}
	hint := spawn.HintAnother
	if missing {
		hint = "install it, or " + hint
	} else if errors.Is(err, syscall.E2BIG) {
		hint = spawn.HintTooLong
	}
	return &spawn.Error{
		Attempt: "execute", Path: name, Hint: hint,
		Cause: &spawn.NotExecutedError{Cause: err.Error(), Missing: missing},
	}
}

// notExecuted is the error of a program that is there, and is not executed.
func notExecuted(name, cause, hint string) error {
	return &spawn.Error{Attempt: "execute", Path: name, Cause: &spawn.NotExecutedError{Cause: cause}, Hint: hint}
}

// programDirs are the directories whose programs the command may execute: those
// of PATH, of the program itself, and of every toolchain.
func (l *learner) programDirs(program string, secrets func(string) string) ([]string, error) {
	store, snapshot, err := (&learner{
		user: l.user, project: l.project, kind: l.kind,
		values: map[string]any{"enabled": true, "toolchains": toolchain.Languages()},
	}).open()
	if err != nil {
		return nil, err
	}
	defer store.Close()
	places := []string{}
	compiled := snapshot.Compile(l.kind)
	for _, rule := range compiled.Policy.Rules {
		if rule.Origin.Key == "toolchains" && rule.Access.Has(policy.Execute) {
			places = append(places, rule.Path)
		}
	}
	dirs := append(filepath.SplitList(os.Getenv("PATH")), filepath.Dir(program))
	if real, err := fsguard.EvalSymlinks(program); err == nil {
		dirs = append(dirs, filepath.Dir(real))
	}
	for _, dir := range dirs {
		if real, err := fsguard.EvalSymlinks(dir); err == nil && filepath.IsAbs(real) && secrets(real) == "" {
			places = append(places, real)
		}
	}
	return places, nil
}

// allowRead allows reads, except of credentials.
func (l *learner) allowRead(d spawn.Denial, secrets func(string) string) spawn.Answer {
	if d.Access != "read" || isOptionalRead(d.Target) || secrets(d.Target) != "" {
		return spawn.AnswerDeny
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.reads[d.Target] = true
	return spawn.AnswerOnce
}

// isOptionalRead reports whether a file describes the machine or its processes.
// Programs work without reading it.
func isOptionalRead(target string) bool {
	return policy.Contains("/sys", target) || policy.Contains("/proc", target)
}

// isPythonCache reports whether a file is bytecode that Python caches. Python
// works without it: importlib ignores the error. A grant would let sessions
// write beside programs that run outside.
func isPythonCache(target string) bool {
	return strings.Contains(target+"/", "/__pycache__/")
}

// record stores everything that the command needed. The program itself is not
// among the denials, as the sidecar executes it.
func (l *learner) record(program string, denials []spawn.Denial) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.needs = append(l.needs, need{access: "execute", target: program})
	names := map[string]int{}
	for _, d := range denials {
		access, target := string(d.Access), d.Target
		switch {
		case access == "read" && isOptionalRead(target), access == "create" && isPythonCache(target):
			continue
		case d.Detail != "":
			l.needs = append(l.needs, need{access: access, target: target, refused: presentation.DenialLine(d)})
			continue
		case d.Datagram && !strings.HasSuffix(target, ":53"): // which has a note of its own
			l.needs = append(l.needs, need{refused: presentation.DenialLine(d) + ": " + presentation.OnlyTCP})
			continue
		case access == "create" || access == "remove":
			// Some names are enough to choose a setting for their directory.
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

// mostNames bounds the names that are recorded of one directory.
const mostNames = 8

// open opens the settings, with what is learned so far as their top layer, and
// the sandbox on whatever they say. The caller closes the store.
func (l *learner) open() (*settings.Store, *compile.Snapshot, error) {
	layer, err := l.text()
	if err != nil {
		return nil, nil, err
	}
	store, err := settings.Open(settings.Options{
		UserPath: absoluteOr(l.user), Editor: layer, Command: []byte(sandboxLayer), Env: os.Environ(),
		Guarded: program(), Complete: complete, Once: true,
	})
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
