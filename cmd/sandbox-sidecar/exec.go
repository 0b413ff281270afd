//go:build unix

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"

	"github.com/sandbox-sidecar/sandbox-sidecar/cmd/sandbox-sidecar/commandline"
	"github.com/sandbox-sidecar/sandbox-sidecar/cmd/sandbox-sidecar/report"
	"github.com/sandbox-sidecar/sandbox-sidecar/display"
	"github.com/sandbox-sidecar/sandbox-sidecar/lifecycle"
	"github.com/sandbox-sidecar/sandbox-sidecar/places"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform"
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

// tellInside says that a command is not about the session that it runs in.
func tellInside() {
	if inSession() {
		printNotes([]string{"inside a session: this is about sessions that start outside, not about this one"})
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
	// programs are real paths that may be read and executed.
	programs []string
	// variables are passed on, whatever the settings list.
	variables []string
	// inherited are the caller's descriptors above 2 for the program, and
	// tooHigh the numbers of those that cannot be passed on.
	inherited []*os.File
	tooHigh   []int
	// report tells an editor's window about the session; nil if there is none.
	// held is what stderr holds then; nil if it holds nothing.
	report *report.Report
	held   *report.Held
}

// run runs a job in the caller's own terminal, and returns its exit status.
func (p *projectFlags) run(flags *flagSet, j job) error {
	start := newHeadStart(slog.New(plainLog{}), j.inherited, p.under())
	defer start.close()
	store, snapshot, kind, err := p.open(flags)
	if err != nil {
		return err
	}
	defer store.Close()
	here, _ := workingDir() // if there is none, the start says so
	plan := session.New(store, snapshot, session.Wish{
		Kind: kind, Confined: p.sandbox, Certain: true, Dir: here, // the user has a terminal to fix a file in
		Facts: session.Facts{Variables: j.variables, Programs: j.programs},
	})
	// For a window. The id takes long.
	var policyID string
	if j.report != nil {
		policyID = plan.PolicyID()
	}
	warnings := j.warnOff(plan, snapshot, kind)
	if j.quiet {
		printErrors(stderr, plan.Diagnostics)
	} else {
		printDiagnostics(stderr, snapshot, plan.Diagnostics)
	}
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
		printWarnings(risks)
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
	asker := &asker{
		store: store, projectDir: snapshot.ProjectDir, kind: kind, report: j.report, runs: make(chan struct{}),
	}
	running, err := session.Start(admitted, spawn.Request{
		Program: j.program, Argv: j.argv, Env: j.env, Dir: dir, Ask: asker.ask,
	}, func(request spawn.Request) (*spawn.Foreground, error) {
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
		printWarnings(compiled.Exposures(presentation.ProtectsExistingPaths(running.Outcome())))
	}
	printUnheld(&compiled, running.Outcome(), j.quiet)
	if cause := running.Outcome().Unconfinable; cause != nil {
		warnUnsandboxed("not sandboxed: "+cause.Error(), "", j.held != nil)
	}
	exit, err := running.Wait()
	if err != nil && !j.report.Log(err.Error()) {
		display.Fprintf(stderr, "sandbox-sidecar: %v\n", err)
	}
	hints := j.hints(running, exit, &compiled, store)
	if j.report.End(exit, hints) {
		return endOf(exit)
	}
	j.held.Pass()
	printEnd(running, hints, refusedSummary{
		store: store, snapshot: store.Snapshot(snapshot.ProjectDir), kind: kind, line: p.under(),
		elsewhere: p.elsewhere(flags),
	})
	return endOf(exit)
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

// hints say what the sandbox may have to do with a failure.
func (j job) hints(
	running *spawn.Foreground, exit spawn.Exit, compiled *compile.Result, store *settings.Store,
) []string {
	denials, missed := running.Denials()
	return presentation.Hints(presentation.Failed{
		Exit: exit, Argv: j.argv, Outcome: running.Outcome(), Unheard: true, Reported: len(denials) > 0 || missed > 0,
		HasToolchain: compiled.HasToolchain, PassVariable: compiled.PassVariable, FirstTime: store.FirstTime,
	})
}

// printEnd prints what there is to say about a session that has ended.
func printEnd(running *spawn.Foreground, hints []string, s refusedSummary) {
	for _, limit := range running.Limits() {
		display.Fprintf(stderr, "sandbox-sidecar: note: %s\n", presentation.LimitLine(limit))
	}
	listChanges(stderr, running.Alarms(), running.Findings())
	s.print(stderr, running)
	for _, hint := range hints {
		display.Fprintf(stderr, "sandbox-sidecar: hint: %s\n", hint)
	}
}

func printWarnings(warnings []string) {
	for _, warning := range warnings {
		display.Fprintf(stderr, "sandbox-sidecar: warning: %s\n", warning)
	}
}

// printUnheld prints the keys that somebody wrote and that do not hold. Briefly,
// that is one line.
func printUnheld(compiled *compile.Result, outcome spawn.Outcome, briefly bool) {
	unheld := presentation.UnheldKeys(compiled.Written, compiled.Policy.Restricted, outcome)
	if len(unheld) == 0 {
		return
	}
	if !briefly {
		for _, one := range unheld {
			printWarnings([]string{one.Warning()})
		}
		return
	}
	var names []string
	for _, one := range unheld {
		names = append(names, one.Names())
	}
	printWarnings([]string{"not enforced here, `sandbox-sidecar policy` says why: " + strings.Join(names, ", ")})
}

func printNotes(notes []string) {
	for _, note := range notes {
		display.Fprintf(stderr, "sandbox-sidecar: note: %s\n", note)
	}
}

// maxClosedShown bounds the descriptors that printClosed names.
const maxClosedShown = 4

// printClosed names, in one line, the caller's descriptors that the program has
// not got.
func printClosed(closed []platform.Closed, tooHigh []int) {
	var names []string
	for _, descriptor := range closed {
		names = append(names, fmt.Sprintf("%d (%s)", descriptor.Number, descriptor.What))
	}
	for _, number := range tooHigh {
		names = append(names, fmt.Sprintf("%d (too high)", number))
	}
	if len(names) == 0 {
		return
	}
	more := ""
	if len(names) > maxClosedShown {
		more = fmt.Sprintf(" and %d more", len(names)-maxClosedShown)
		names = names[:maxClosedShown]
	}
	display.Fprintf(stderr, "sandbox-sidecar: note: descriptors closed, as the sandbox does not open them: %s%s\n",
		strings.Join(names, ", "), more)
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
			Refusals: keptRefusals(logger, under), Met: places.Of(os.Getenv).Met(),
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

// mostSummed bounds the denials of a summary.
const mostSummed = 12

// refusedSummary is what was refused, and what would allow it by these settings.
type refusedSummary struct {
	store    *settings.Store
	snapshot *compile.Snapshot
	kind     settings.Kind
	line     refusals.Under // what they hold under
	// elsewhere: allow, without flags, would change other settings.
	elsewhere bool
}

// print prints the denials of a command, and the settings that would allow them.
func (s refusedSummary) print(w io.Writer, running *spawn.Foreground) {
	denials, missed := running.Denials()
	if len(denials) == 0 {
		return
	}
	fmt.Fprintln(w, "sandbox-sidecar: refused by the sandbox:")
	for i, denial := range denials {
		if i == mostSummed {
			missed += len(denials) - i
			break
		}
		display.Fprintf(w, "sandbox-sidecar:   %s\n", presentation.DenialLine(denial))
		offer := offerFor(s.store, s.snapshot, wish{
			scope: settings.ScopeUser, kind: s.kind, denial: denial, line: s.line,
		})
		suggestion := offer.suggestion
		switch {
		case suggestion.Protected && presentation.WayOn(denial) == "":
			fmt.Fprintln(w, "sandbox-sidecar:     if you trust the command, run it outside the sandbox")
		case suggestion.Key != "":
			display.Fprintf(w, "sandbox-sidecar:     to allow it: %s%s\n", suggestion.InstructionInFull(),
				s.command(denial, offer))
		case offer.unhelpful:
			display.Fprintf(w, "sandbox-sidecar:     note: %s\n", offer.why)
		}
		if suggestion.Hint != "" {
			display.Fprintf(w, "sandbox-sidecar:     %s\n", note(suggestion.Hint))
		}
	}
	if missed > 0 {
		display.Fprintf(w, "sandbox-sidecar:   and %d more\n", missed)
	}
}

// command is the command that writes the setting, in brackets; "" if there is
// none.
func (s refusedSummary) command(denial spawn.Denial, o offer) string {
	if o.proposal == nil || denial.Number == 0 || s.elsewhere {
		return ""
	}
	return fmt.Sprintf(" (sandbox-sidecar allow %d)", denial.Number)
}

// elsewhere reports whether the flags name other settings or another project.
func (p *projectFlags) elsewhere(flags *flagSet) bool {
	return given(flags, "settings") || given(flags, "project")
}

// mostListed bounds the changes that listChanges prints.
const mostListed = 12

// listChanges prints what happened to protected paths, and the files to check
// because programs outside the sandbox act on them. What an alarm says of a path
// need not be said again. What is created below a new path, as by "git init", is
// part of it.
func listChanges(w io.Writer, alarms []spawn.Alarm, findings []spawn.Finding) {
	said := map[string]bool{}
	for _, alarm := range alarms {
		if slices.ContainsFunc(findings, func(f spawn.Finding) bool {
			return f.How == "created" && strings.HasPrefix(alarm.Path, f.Path+"/")
		}) {
			continue
		}
		display.Fprintf(w, "sandbox-sidecar: warning: %s\n", presentation.AlarmLine(alarm))
		said[alarm.Path] = true
	}
	findings = slices.DeleteFunc(slices.Clone(findings), func(f spawn.Finding) bool {
		return len(f.Others) == 0 && said[f.Path]
	})
	if len(findings) > 0 {
		fmt.Fprintln(w, "sandbox-sidecar: check before programs outside the sandbox use it:")
	}
	for i, finding := range findings {
		if i == mostListed {
			display.Fprintf(w, "sandbox-sidecar:   and %d more\n", len(findings)-i)
			break
		}
		display.Fprintf(w, "sandbox-sidecar:   %s\n", presentation.FindingLine(finding))
	}
}

// note is a hint with a label. A hint that tells the user to be careful is its
// own label.
func note(hint string) string {
	if strings.HasPrefix(hint, "careful: ") {
		return hint
	}
	return "note: " + hint
}
