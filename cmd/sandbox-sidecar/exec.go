//go:build unix

package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"

	"github.com/sandbox-sidecar/sandbox-sidecar/cmd/sandbox-sidecar/commandline"
	"github.com/sandbox-sidecar/sandbox-sidecar/cmd/sandbox-sidecar/report"
	"github.com/sandbox-sidecar/sandbox-sidecar/cmd/sandbox-sidecar/shells"
	"github.com/sandbox-sidecar/sandbox-sidecar/display"
	"github.com/sandbox-sidecar/sandbox-sidecar/lifecycle"
	"github.com/sandbox-sidecar/sandbox-sidecar/places"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
	"github.com/sandbox-sidecar/sandbox-sidecar/presentation"
	"github.com/sandbox-sidecar/sandbox-sidecar/session"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/compile"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/explain"
	"github.com/sandbox-sidecar/sandbox-sidecar/spawn"
	"github.com/sandbox-sidecar/sandbox-sidecar/spawn/caller"
	"github.com/sandbox-sidecar/sandbox-sidecar/spawn/refusals"
)

// joinFlag names a sandbox that runs already.
const joinFlag = "join"

// execute runs a command under the settings in the caller's own terminal, and
// returns its exit status.
func execute(flags *flagSet, args []string) error {
	caller.EndEarly()
	inside := inSession()
	var inherited []*os.File
	var tooHigh []int
	if !inside { // where the command keeps them as they are
		inherited, tooHigh = caller.Inherited()
	}
	project := addProjectFlags(flags, settings.KindTerminal)
	project.addModeFlags(flags)
	join := flags.String(joinFlag, "", "`ID`: run it in that sandbox, which sessions share; see ps")
	if err := parseCommand(flags, args); err != nil {
		return err
	}
	if *join != "" {
		return executeIn(flags, *join, inside)
	}
	if inside {
		return project.runInside(flags, flags.Args())
	}
	return project.run(flags, job{
		argv: flags.Args(), program: flags.Arg(0), env: environ(), inherited: inherited, tooHigh: tooHigh,
	})
}

// executeIn runs a command in a sandbox that runs already, as that is. All other
// flags of exec are about the sandbox.
func executeIn(flags *flagSet, sandbox string, inside bool) error {
	other := ""
	flags.Visit(func(f *flag.Flag) {
		if f.Name != joinFlag && f.Name != commandline.VersionFlag {
			other = f.Name
		}
	})
	if other != "" {
		return misuse(flags, "--%s does not change the sandbox that --%s names", other, joinFlag)
	}
	if inside {
		return errNotFromInside
	}
	return joinSandbox(flags, sandbox)
}

// runInside runs a command in the session that this process is in already. No
// session starts in another, and what is confined needs none. That this is inside
// says the kernel, so that nothing outside can be made to believe it.
func (p *projectFlags) runInside(flags *flagSet, argv []string) error {
	if _, err := p.layer(flags); err != nil {
		return err
	}
	if p.mode == string(settings.ModeStrict) {
		return errStricter
	}
	name := argv[0]
	if p.program != "" {
		name = p.program
	}
	path, err := exec.LookPath(name)
	if err != nil {
		return notFound(name, err)
	}
	printNotes([]string{noteInside})
	return notFound(name, syscall.Exec(path, argv, os.Environ()))
}

const noteInside = "inside a session already: the command runs in that session, confined as it is"

var errStricter = errors.New("inside a session: no command can be made stricter than that; run it outside")

// tellInside says that a command is not about the session that it runs in. What it
// is about is sandboxed all the same, as the session is: the answer that settings
// turn the sandbox off would be wrong there.
func (p *projectFlags) tellInside() {
	if !inSession() {
		return
	}
	printNotes([]string{"inside a session: this is about sandboxed sessions that start outside, not about this one"})
	if p.mode == "" && p.agent == "" {
		p.sandbox = true
	}
}

// job is a command to run in a session.
type job struct {
	program string
	argv    []string
	env     []string
	// quiet: warnings are one line, and nothing is said if settings leave the
	// sandbox off. It is still said if no settings file decides.
	quiet bool
	// variables are passed on, whatever the settings list.
	variables []string
	// inherited are the caller's descriptors above 2 for the program, and
	// tooHigh the numbers of those that cannot be passed on.
	inherited []*os.File
	tooHigh   []int
	// shares runs it in the sandbox that the commands of its agent share, if it can.
	shares bool
	// report tells an editor's window about the session; nil if there is none.
	// held is what stderr holds then; nil if it holds nothing.
	report *report.Report
	held   *report.Held
}

// run runs a job in the caller's own terminal, and returns its exit status.
func (p *projectFlags) run(flags *flagSet, j job) error {
	var start *headStart
	begin := func() { start = newHeadStart(slog.New(plainLog{}), j.inherited, p.under()) }
	defer func() {
		if start != nil {
			start.close()
		}
	}()
	if !j.shares {
		begin()
	}
	store, snapshot, kind, err := p.open(flags)
	if err != nil {
		return err
	}
	defer store.Close()
	here, _ := workingDir() // if there is none, the start says so
	plan := session.New(store, snapshot, j.wish(kind, p.sandbox, here))
	// For a window. The id takes long.
	var policyID string
	if j.report != nil {
		policyID = plan.PolicyID()
	}
	warnings := j.warnOff(plan, snapshot, kind)
	printErrors(stderr, plan.Diagnostics)
	admitted, err := plan.Admit()
	if err != nil {
		return inDoubt(err)
	}
	compiled := admitted.Result
	risks := slices.Concat(compiled.Risks, admitted.Unmade)
	warnings = slices.Concat(warnings, admitted.Unmade, admitted.Told)
	if j.quiet {
		printBriefly(stderr, snapshot, compiled.Diagnostics, risks)
	} else {
		printFew(stderr, snapshot, compiled.Diagnostics, risks)
		p.sayHome(flags, compiled.Policy)
	}
	printNotes(admitted.Told)
	if p.found != nil {
		printNotes(p.found.notes(compiled.Policy))
		j.env = p.found.environ(j.env, compiled.Policy)
	}
	dir, err := workingDir()
	if err != nil {
		return fmt.Errorf("find working directory: %w", err)
	}
	if j.shares {
		if exit, err, ran := j.runShared(admitted, snapshot.ProjectDir, dir); ran {
			return cmp.Or(err, endOf(exit))
		}
		begin()
	}
	asker := &asker{
		store: store, projectDir: snapshot.ProjectDir, kind: kind, report: j.report, runs: make(chan struct{}),
	}
	refused := refusedSummary{
		store: store, snapshot: snapshot, kind: kind, line: p.under(), elsewhere: p.elsewhere(flags),
	}
	request := spawn.Request{Program: j.program, Argv: j.argv, Env: j.env, Dir: dir, Ask: asker.ask}
	if j.prompts() {
		request.AtPrompt = refused.atPrompt
	}
	running, err := session.Start(admitted, request, func(request spawn.Request) (*spawn.Foreground, error) {
		return start.take().Start(context.Background(), request)
	})
	if err != nil {
		return p.namingAgent(err, j.argv[0])
	}
	j.report.Begin(report.Session{
		Running: running, Compiled: compiled, PolicyID: policyID, Store: store, Cwd: dir,
		ProjectDir: snapshot.ProjectDir, Kind: kind, Argv: j.argv, Warnings: warnings, Guarded: guarded(),
	}, j.held)
	asker.started(running)
	printClosed(running.Outcome().Closed, j.tooHigh)
	if !j.quiet {
		printWarnings(stderr, compiled.Exposures(presentation.ProtectsExistingPaths(running.Outcome())))
	}
	printUnheld(stderr, &compiled, running.Outcome(), j.quiet)
	printLost(stderr, running.Outcome(), j.quiet)
	if cause := running.Outcome().Unconfinable; cause != nil {
		warnUnsandboxed("not sandboxed: "+cause.Error(), "", j.held != nil)
	}
	exit, err := running.Wait()
	if err != nil && !j.report.Log(err.Error()) {
		display.Fprintf(stderr, "sandbox-sidecar: %v\n", err)
	}
	hints := hintsAfter(running, exit, j.argv, &compiled, store)
	if j.report.End(exit, hints) {
		return endOf(exit)
	}
	j.held.Pass()
	refused.snapshot = store.Snapshot(snapshot.ProjectDir)
	hints = slices.Concat(refused.namedRefusals(running, exit, j.argv, dir), hints)
	printEnd(stderr, running, hints, refused)
	return endOf(exit)
}

// sayHome says how to open less than the home directory.
func (p *projectFlags) sayHome(flags *flagSet, session policy.Policy) {
	home, err := os.UserHomeDir()
	if err == nil && session.Restricted && session.Project == realPath(home) && !given(flags, "project") {
		printNotes([]string{"to open one project alone: start it there, or name it with --project DIR"})
	}
}

// prompts reports whether somebody types commands into it, if it is a shell, and
// nothing else tells what they are refused.
func (j job) prompts() bool {
	return j.report == nil && isTerminal(os.Stdin) && isTerminal(os.Stdout) && len(j.argv) > 0 &&
		!shells.Parse(j.argv[1:], true).Command
}

// wish is what a job wants of its session.
func (j job) wish(kind settings.Kind, confined bool, dir string) session.Wish {
	return session.Wish{
		Kind: kind, Confined: confined, Certain: true, Dir: dir, // the user has a terminal to fix a file in
		Facts: session.Facts{Variables: j.variables},
	}
}

// warnOff prints and returns why the settings leave a job without a sandbox.
func (j job) warnOff(plan *session.Plan, snapshot *compile.Snapshot, kind settings.Kind) []string {
	if plan.Policy.Restricted || plan.Doubt != nil {
		return nil
	}
	// The explanation names the setting; it is the same for every access.
	x, err := explain.Why(snapshot, kind, explain.Connect, "")
	if err != nil {
		return nil
	}
	why, advice := unsandboxed(x)
	if advice == "" && j.quiet {
		return nil
	}
	warnUnsandboxed(why, advice, j.held != nil)
	return []string{strings.TrimSpace(why + " " + advice)}
}

// unsandboxed says why there is no sandbox, and what to do.
func unsandboxed(x explain.Answer) (why, advice string) {
	if x.Rule != nil && x.Rule.Origin.File == policy.OriginBuiltIn && x.Key == "enabled" {
		return "not sandboxed: no settings file turns the sandbox on.",
			"Run `sandbox-sidecar init`, or use `exec --sandbox`."
	}
	return x.Reason, ""
}

// warnUnsandboxed prints a warning, in yellow on a terminal, unless it is held.
func warnUnsandboxed(why, advice string, held bool) {
	colours := !held && hasColours(os.Stderr)
	if colours {
		fmt.Fprint(os.Stderr, "\x1b[33m")
	}
	display.Fprintf(stderr, "sandbox-sidecar: %s\n", strings.TrimSpace(why+" "+advice))
	if colours {
		fmt.Fprint(os.Stderr, "\x1b[0m")
	}
}

// endOf makes this process end as a command has: by the same signal, or with the
// same exit status.
func endOf(exit spawn.Exit) error {
	if exit.Signal != 0 {
		return endedBy(exit.Signal)
	}
	return statusOf(exit)
}

// statusOf is the exit status that reports how a command ended.
func statusOf(exit spawn.Exit) exitStatus {
	if exit.Signal != 0 {
		return exitStatus(128 + int(exit.Signal)) // as shells report it
	}
	return exitStatus(exit.Code)
}

// plainLog prints warnings for somebody at a terminal: what happened and why,
// without times and names of fields.
type plainLog struct{}

func (plainLog) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelWarn }

func (plainLog) Handle(_ context.Context, record slog.Record) error {
	text := record.Message
	record.Attrs(func(attr slog.Attr) bool {
		if attr.Key == "error" {
			text += ": " + attr.Value.String()
		}
		return true
	})
	display.Fprintf(stderr, "sandbox-sidecar: warning: %s\n", text)
	return nil
}

func (h plainLog) WithAttrs([]slog.Attr) slog.Handler { return h }
func (h plainLog) WithGroup(string) slog.Handler      { return h }

// headStart makes what a session needs whatever its settings are, while another
// goroutine reads them: the tracker, and a stage that waits for its order. See
// docs/design/exec.md.
type headStart struct {
	made     chan struct{} // closed once the fields below are set
	tracker  *lifecycle.Tracker
	prepared *spawn.Prepared
	drop     sync.Once // taken or dropped

	listening     chan struct{} // closed once stopListening is set
	stopListening func()
}

func newHeadStart(logger *slog.Logger, inherited []*os.File, under refusals.Under) *headStart {
	h := &headStart{made: make(chan struct{}), listening: make(chan struct{})}
	go func() {
		defer close(h.made)
		reserveThreads(endingThreads)
		h.tracker = openTracker(logger)
		spawner := &spawn.Spawner{
			Backend: backendForOne(logger), Tracker: h.tracker, Logger: logger, Recorder: &trail, Inherited: inherited,
			Refusals: keptRefusals(logger, under), Met: places.Of(os.Getenv).Met(), Credentials: credentialsProgram(),
		}
		h.prepared = spawner.Prepare()
		go func() { // beside the start, which needs none of it
			defer close(h.listening)
			h.stopListening = listen(h.tracker, spawner, logger, nil)
		}()
	}()
	return h
}

// take returns the stage. The caller must use it or drop it.
func (h *headStart) take() *spawn.Prepared {
	<-h.made
	h.drop.Do(func() {})
	return h.prepared
}

// close drops the stage, unless it was taken, and ends everything else. No
// session may run any more.
func (h *headStart) close() {
	<-h.made
	h.drop.Do(h.prepared.Drop)
	<-h.listening
	h.stopListening()
	closeWatches(h.tracker)
	_ = h.tracker.Close() // the user's next sidecar ends what is left
}
