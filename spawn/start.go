package spawn

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sandbox-sidecar/sandbox-sidecar/audit"
	"github.com/sandbox-sidecar/sandbox-sidecar/fsguard"
	"github.com/sandbox-sidecar/sandbox-sidecar/lifecycle"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
	"github.com/sandbox-sidecar/sandbox-sidecar/spawn/history"
	"github.com/sandbox-sidecar/sandbox-sidecar/spawn/record"
	"github.com/sandbox-sidecar/sandbox-sidecar/spawn/refusals"
)

// maxAttempts bounds the attempts to start one leader: in the stage on standby,
// then with a guess about the machine, then without it.
const maxAttempts = 3

// errRetry means that the stage on standby, a guess about the machine, or a start
// without a stage was of no use. Another attempt does without it.
var errRetry = errors.New("the stage does not fit this session")

// start makes attempts until one starts a leader, or fails for a reason that
// another attempt cannot change. The first one uses the stage, unless that is
// nil.
func (s *Spawner) start(
	ctx context.Context, request Request, streams streams, standby *standbyStage,
) (*running, error) {
	var noted *record.Session
	if request.shared == nil { // each of its sessions is noted
		noted = s.note(&request)
	}
	for attempts := 1; ; attempts++ {
		a := &attempt{
			spawner: s, request: request, streams: streams, standby: standby, record: noted, policy: &policy.Policy{},
			byStage: attempts > 1,
		}
		running, err := a.start(ctx)
		switch {
		case err == nil:
			noted.Started(running.process.PID(), running.outcome.Confined, running.outcome.Protections())
			running.kept.Started(running.process.PID())
			if request.shared == nil { // StartGroup lists a group once it can be joined
				s.listing.add(running, &request, nil)
			}
			return running, nil
		case !errors.Is(err, errRetry) || attempts == maxAttempts:
			noted.NotStarted(err)
			return nil, err
		}
		standby = nil
	}
}

// note begins to note a session for the audit trail.
func (s *Spawner) note(request *Request) *record.Session {
	if s.Recorder == nil || !request.Policy.Audit.On() {
		return nil
	}
	id := request.PolicyID
	if id == nil {
		id = request.Policy.ID
	}
	return record.Begin(s.Recorder, request.Policy.Audit, audit.Event{
		Session: request.ID, Kind: request.kind(), Project: request.Policy.Project, Dir: request.Dir,
		Program: request.Program, Argv: request.Argv, Restricted: &request.Policy.Restricted,
	}, func(event *audit.Event) { event.Policy = id() })
}

// keep begins to keep what a session is refused.
func (s *Spawner) keep(request *Request) *refusals.Session {
	return s.Refusals.Begin(request.Policy.Project, request.kind(), request.Program)
}

// attempt is one attempt to start a leader. Its methods are the phases of the
// start, in the order in which start calls them; see docs/design/spawn.md.
type attempt struct {
	spawner *Spawner
	request Request
	streams streams
	standby *standbyStage   // nil: the attempt starts a stage of its own
	byStage bool            // the program was not executed without a stage before
	record  *record.Session // nil: there is no audit trail

	running        *running
	target         platform.Target
	policy         *policy.Policy // the request's, with the session's directories
	runtimeDir     string         // private to the session; empty if it has none
	own            []string       // variables that name what the session has for itself
	releaseStreams func()         // set by terminal
	watching       sync.WaitGroup // until running.protection and the two errors are set
	watchErr       error          // of the watch over protected paths
	guardErr       error          // of the group's guard
	auditErr       error          // of the audit trail
	warnings       []string
	lacking        []platform.Missing // what the policy grants and the session could not get
	uses           *keyUses           // of the filters before agents; nil until there is one
}

// start goes through the phases. On an error nothing is left running.
func (a *attempt) start(ctx context.Context) (_ *running, err error) {
	if err := a.group(); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			a.abandon()
		}
	}()
	if err := a.confinement(ctx); err != nil {
		return nil, err
	}
	a.environment()
	if err := a.terminal(); err != nil {
		return nil, err
	}
	defer a.releaseStreams()
	a.watch()
	launched, err := a.stage(ctx)
	if err != nil {
		return nil, err
	}
	a.outcome(launched)
	if a.request.Full && !a.running.outcome.Full() {
		return nil, notFull(mayOutlive) // endsAll and the stage have checked the rest
	}
	return a.running, nil
}

// abandon ends what an attempt that failed has started.
func (a *attempt) abandon() {
	if a.standby != nil {
		a.standby.end()
	}
	a.running.abandon()
}

// group takes the group of the stage on standby, or makes one.
func (a *attempt) group() error {
	a.running = &running{
		tracker: a.spawner.Tracker, log: a.spawner.log(), record: a.record, shared: a.request.shared,
	}
	if a.standby != nil {
		a.running.group = a.standby.group
	} else {
		group, err := a.spawner.Tracker.NewGroup(a.request.ID)
		if err != nil {
			return &Error{Attempt: "track processes", Cause: err}
		}
		a.running.group = group
	}
	a.target = platform.Target{
		Order: platform.Order{Program: a.request.Program, Argv: a.request.Argv, Dir: a.request.Dir},
		Start: a.running.group.Start,
	}
	if group := a.request.shared; group != nil {
		a.target.Order.Program, a.target.Order.Argv = group.init.Command(a.spawner.Backend)
	}
	if a.request.foreground {
		a.target.Inherited = a.spawner.Inherited
	}
	return nil
}

// confinement has the backend prepare the sandbox that the policy asks for. The
// stage on standby must fit it.
func (a *attempt) confinement(ctx context.Context) error {
	p := &a.request.Policy
	if a.request.Full && !p.Restricted {
		return notFull("the settings leave the sandbox off")
	}
	if p.Restricted || p.TrackBySandbox {
		own := *p
		a.policy = &own
		a.makeRuntimeDir()
		a.makeTemporaryDirs()
		a.prepareHistory()
		a.makeCopies()
		hooks := a.hooks()
		a.openRoom(ctx, &hooks)
		a.filterAgents() // reports by the hooks' queue
		a.tellAtPrompt()
		a.running.policy = a.policy
		confinement, err := a.spawner.Backend.Confine(a.policy, hooks)
		switch {
		case err == nil:
			a.target.Confinement = confinement
			if a.running.denials != nil {
				a.running.denials.lacking = append(a.lacking, confinement.Lacking...)
			}
			a.target.Order.InSignalDomain = p.Restricted && useSignalDomain(a.running.group)
			a.target.Order.Full = a.request.Full
			if a.request.Full && !a.endsAll() {
				return notFull(mayOutlive)
			}
		case !p.Restricted:
			// The policy restricts nothing, and the reply says how the session
			// is tracked instead.
			a.running.log.Warn("a session is not tracked by a sandbox", "error", err)
		default:
			if refusal := unavailable(p, err); refusal != nil {
				return refusal
			}
			if a.request.Full {
				return notFull(err.Error())
			}
			a.running.outcome.Unconfinable = err
		}
	}
	if a.standby != nil && !a.standby.fits(p, a.target.Confinement) {
		return errRetry
	}
	return nil
}

// mayOutlive says that process tracking is not enforced.
const mayOutlive = "processes of the session may outlive it"

// endsAll reports whether every process of the session will end with it, as far
// as that is known before the start. A group that is marked learns it later.
func (a *attempt) endsAll() bool {
	_, marked := a.running.group.(lifecycle.Marked)
	return marked || a.target.Order.InSignalDomain || a.running.group.Tracking().Guarantee
}

// makeRuntimeDir makes the session's private runtime directory, if it is to have
// one, and grants it.
func (a *attempt) makeRuntimeDir() {
	p := a.policy
	if !p.Restricted || !p.PrivateRuntimeDir {
		return
	}
	dir, err := a.makeOwnDir("private runtime directory")
	if err != nil {
		// Having none restricts the session further, and opens nothing.
		a.running.log.Warn("no private runtime directory for a session", "error", err)
		a.warnings = append(a.warnings, noRuntimeDir)
		return
	}
	a.runtimeDir = dir
}

// makeOwnDir makes a directory that the session may write, also if it lies in the
// sidecar's state, which is read-only where a grant would open it.
func (a *attempt) makeOwnDir(key string) (string, error) {
	dir, err := a.running.group.MakeDir()
	if err != nil {
		return "", err
	}
	p := a.policy
	p.Rules = slices.Concat(p.Rules, []policy.Rule{{
		Path: dir, Access: policy.ReadWrite, Origin: policy.Origin{File: policy.OriginSession, Key: key},
	}})
	if _, within := p.ProtectedAt(dir); within {
		p.Reopened = slices.Concat(p.Reopened, []string{dir})
	}
	return dir, nil
}

// makeTemporaryDirs makes the directories for temporary files, of the project or of
// the group. One that cannot be made is not granted, or is hidden if a directory
// above it is: the session would share the real one.
func (a *attempt) makeTemporaryDirs() {
	p := a.policy
	if !p.Restricted {
		return
	}
	p.Temporary = slices.Clone(p.Temporary)
	failed := func(t policy.Temporary) bool { return t.Source == "" }
	owner := p.Project
	if a.request.Group != "" {
		owner += "\x00" + a.request.Group // no path has that byte
	}
	for i, t := range p.Temporary {
		dir, err := a.spawner.Tracker.TemporaryDir(owner, t.Path)
		if err != nil {
			why := fmt.Sprintf("%s cannot be used: no directory of the project's own could be made there: %v",
				t.Path, cause(err))
			a.running.log.Warn(why)
			a.warnings = append(a.warnings, why)
			a.lacking = append(a.lacking, platform.Missing{Path: t.Path, Reason: why})
			p.Rules = slices.DeleteFunc(slices.Clone(p.Rules), func(r policy.Rule) bool { return r.Path == t.Path })
			p.Hidden = slices.Concat(p.Hidden, []policy.Hidden{{Path: t.Path, Origin: t.Origin}})
			continue
		}
		p.Temporary[i].Source = dir
	}
	p.Temporary = slices.DeleteFunc(p.Temporary, failed)
}

// prepareHistory makes the project's own history of shells, if the policy has
// it. What tools type there would be offered to the user in the next terminal.
func (a *attempt) prepareHistory() {
	p, typed := a.policy, !a.request.NoInput && !a.request.Pipe && !a.request.Tool
	if !p.Restricted {
		return
	}
	if !history.Granted(p) {
		if typed && p.Project != "" {
			a.sayWhyNoHistory()
		}
		return
	}
	var prepared history.Session // without it, the session has none
	if typed {
		var err error
		prepared, err = history.Prepare(history.Request{
			Project: p.Project, Policy: p, Outer: lastOfEach(a.request.Env), Program: a.request.Program,
		})
		if err != nil {
			if !fsguard.NotMade(err) { // that was said of the state directory
				a.running.log.Warn("no history of shells for a session", "error", err)
			}
			prepared = history.Session{}
		}
		if !grantsAll(p, prepared.Rules) {
			a.running.log.Warn("no history of shells for a session: HOME or XDG_STATE_HOME is another inside")
			prepared = history.Session{}
		}
	}
	a.own = append(a.own, prepared.Env...)
	a.policy = history.Limited(p, prepared)
}

// sayWhyNoHistory logs why the policy of a terminal has no history.
func (a *attempt) sayWhyNoHistory() {
	places, err := history.Look(a.request.Env)
	if err == nil {
		_, err = places.Find(history.Request{Project: a.policy.Project, Policy: a.policy})
	}
	if err != nil {
		a.running.log.Warn("no history of shells for a session", "error", err)
	}
}

func grantsAll(p *policy.Policy, rules []policy.Rule) bool {
	return !slices.ContainsFunc(rules, func(r policy.Rule) bool { return !slices.Contains(p.Rules, r) })
}

// noRuntimeDir warns the user of a session that should have a private runtime
// directory and has none.
const noRuntimeDir = "no private runtime directory (XDG_RUNTIME_DIR): the sidecar's state directory cannot be used"

// hooks are what the sidecar wants of the sandbox for itself: marks to
// recognise processes by, and reports of denials.
func (a *attempt) hooks() platform.Hooks {
	// The hooks live as long as the session. They must not hold the attempt.
	p, request, running := &a.request.Policy, &a.request, a.running
	hooks := platform.Hooks{}
	if mark, ok := a.running.group.(lifecycle.Marked); ok {
		hooks.Mark = mark
	}
	switch {
	case request.shared != nil:
		hooks.Shared = true
		if request.shared.noted() {
			hooks.Connected = request.shared.connected
		}
	case a.record != nil:
		hooks.Connected = a.record.Connected
	}
	if p.Restricted {
		hooks.Crowded = running.crowded
		hooks.Configured = running.configured
	}
	if !p.Restricted || p.OnDenied == policy.Ignore {
		return hooks
	}
	most := maxDenials
	if request.Learn != nil {
		most, hooks.Learn = maxLearnt, request.Learn
	}
	denials := newDenialQueue(most)
	a.running.denials = denials
	if request.Learn == nil && request.shared == nil {
		running.kept = a.spawner.keep(request)
	}
	hooks.Denied = running.denied
	var ask func(context.Context, platform.Denial) Answer
	switch questions := a.questions(); {
	case request.Learn != nil && request.Ask != nil:
		learn := request.Ask
		ask = func(ctx context.Context, d platform.Denial) Answer { return learn(ctx, Denial{Denial: d}) }
	case questions != nil && p.OnDenied == policy.Ask:
		ask = questions.ask
	}
	if ask != nil {
		hooks.Ask = func(ctx context.Context, d platform.Denial) Answer {
			if platform.Expected(d) {
				return AnswerUnasked
			}
			return ask(ctx, d)
		}
	}
	return hooks
}

// questions are those that the user of the session is asked; nil if nobody is.
// While settings are learned every answer is a yes that nobody gave.
func (a *attempt) questions() *questions {
	if a.running.questions == nil && a.request.Ask != nil && a.request.Learn == nil {
		a.running.questions = newQuestions(a.request.Ask, a.record)
		if group := a.request.shared; group != nil {
			a.running.questions.whose = group.patienceWith
		}
	}
	return a.running.questions
}

// useSignalDomain lets the kernel hold a group's processes together, if it can
// and no other mechanism does. It reports whether the stage must be ordered to
// enter the signal domain.
func useSignalDomain(group lifecycle.Group) bool {
	capable, ok := group.(lifecycle.SignalDomainGroup)
	return ok && capable.UseSignalDomain()
}

// surroundings are what a sandbox has for itself, as far as variables name it.
type surroundings struct {
	policy          *policy.Policy // with the sandbox's directories
	confinement     platform.Confinement
	runtimeDir      string   // empty if there is none
	own             []string // variables that name more
	lacksRuntimeDir bool     // there should be one
	log             *slog.Logger
}

// environment sets the leader's environment.
func (a *attempt) environment() {
	around := surroundings{
		policy: a.policy, confinement: a.target.Confinement, runtimeDir: a.runtimeDir, own: a.own,
		lacksRuntimeDir: slices.Contains(a.warnings, noRuntimeDir), log: a.running.log,
	}
	if group := a.request.shared; group != nil {
		group.around = around
		a.target.Order.Env = lifecycle.SmallRuntime
		return
	}
	a.target.Order.Env, a.running.outcome.Dropped = around.environment(&a.request)
	a.running.env = a.target.Order.Env
}

// environment is what a program gets, and the names of the variables that the
// policy removed.
func (s *surroundings) environment(request *Request) (env, dropped []string) {
	env, dropped = request.environment(s.runtimeDir)
	env = s.temporaryEnvironment(env)
	env, dropped = withOwn(env, dropped, s.own)
	if more := s.confinement.Environ; len(more) > 0 {
		env = lastOfEach(slices.Concat(env, more))
	}
	if s.lacksRuntimeDir { // without this, it would be the user's own
		env = slices.DeleteFunc(env, func(entry string) bool {
			name, _, _ := strings.Cut(entry, "=")
			return slices.Contains(runtimeVariables, name)
		})
	}
	return env, dropped
}

// terminal sets the leader's standard streams.
func (a *attempt) terminal() (err error) {
	a.running.master, a.releaseStreams, err = a.streams(&a.target, a.request)
	a.running.writable = anyWritable(a.target.Streams[:]) || anyWritable(a.target.Inherited)
	return err
}

// watch has the watchdog started and begins to watch the protected paths, if
// possible while the stage confines itself.
func (a *attempt) watch() {
	a.watching.Go(func() { a.guardErr = a.running.group.Guard() })
	if a.request.Policy.Restricted {
		a.watching.Go(func() {
			a.running.protection, a.watchErr = newProtectionWatch(&a.request.Policy, a.spawner.Met,
				a.target.Confinement.Watch, a.record)
		})
	}
	a.target.Settled = func() error {
		a.watching.Wait()
		a.auditErr = a.record.Acknowledged()
		return errors.Join(a.guardErr, a.auditErr)
	}
}

// stage lets a stage confine itself and execute the program.
func (a *attempt) stage(ctx context.Context) (platform.Launched, error) {
	launched, err := a.launch(ctx)
	a.watching.Wait()
	switch {
	case err != nil && a.guardErr != nil:
		return platform.Launched{}, &Error{Attempt: "track processes", Cause: a.guardErr}
	case err != nil && a.auditErr != nil:
		hint := auditHint(a.auditErr, a.request.Policy.Audit)
		return platform.Launched{}, &Error{Attempt: "note session", Cause: a.auditErr, Hint: hint}
	case err != nil:
		return platform.Launched{}, launchError(a.request, err)
	}
	return launched, nil
}

// launch executes the target in the stage on standby, or in a new one. The
// error wraps errRetry if another attempt may succeed.
func (a *attempt) launch(ctx context.Context) (platform.Launched, error) {
	launched, err := a.launchDirect(ctx)
	if !errors.Is(err, platform.ErrNeedsStage) {
		return launched, err
	}
	stage, err := a.startedStage()
	if err == nil {
		launched, err = stage.Launch(ctx, a.target)
	}
	if err == nil || ctx.Err() != nil {
		return launched, err
	}
	invalidate := a.target.Confinement.InvalidateGuess
	lost := errors.Is(err, platform.ErrStageDied) || errors.Is(err, platform.ErrStageSilent)
	switch {
	case lost && a.standby != nil && a.standby.pooled:
		err = fmt.Errorf("%w: %w", errRetry, err) // it was killed or stopped on standby
	case invalidate != nil && unconfined(err):
		invalidate()
		err = fmt.Errorf("%w: %w", errRetry, err)
	}
	return launched, err
}

// launchDirect executes the target without a stage, or returns
// platform.ErrNeedsStage. The leader must be in its group by then.
func (a *attempt) launchDirect(ctx context.Context) (platform.Launched, error) {
	group, ok := a.running.group.(lifecycle.BirthGroup)
	if !ok || !group.FromBirth() || a.standby != nil || a.byStage {
		return platform.Launched{}, platform.ErrNeedsStage
	}
	launched, err := platform.LaunchDirect(ctx, a.target)
	switch {
	case err == nil:
		a.running.log.Debug("a program was started without a stage", "pid", launched.Process.PID())
	case errors.Is(err, platform.ErrNotExecuted) && ctx.Err() == nil:
		err = fmt.Errorf("%w: %w", errRetry, err) // with another terminal, as this one may be hung up
	}
	return launched, err
}

// startedStage returns the stage on standby, or starts one.
func (a *attempt) startedStage() (*platform.Standby, error) {
	if a.standby != nil {
		return a.standby.started()
	}
	return platform.StartStage(a.spawner.Backend, a.target)
}

// unconfined reports whether a stage failed before it was confined.
func unconfined(err error) bool {
	var failure *platform.Failure
	return !errors.As(err, &failure) || failure.Step == platform.StepConfine
}

// outcome records what the session got, and has a stage started for the next
// session.
func (a *attempt) outcome(launched platform.Launched) {
	if !a.request.Pipe { // a stage on standby opens a terminal
		a.spawner.pool.refill(a.spawner, a.target.Confinement)
	}
	r := a.running
	r.process, r.startedAt = launched.Process, time.Now()
	r.held, r.supervision, r.localhost = launched.HeldFiles, launched.Supervision, launched.Localhost
	r.protection.suspect(func() bool { return r.wroteNothing(nil) })
	if launched.Terminal != nil {
		r.master = launched.Terminal
	}
	o := &r.outcome
	o.Confined = a.request.Policy.Restricted && a.target.Confinement.Orders != nil
	o.Enforcement, o.Closed = launched.Enforcement, launched.Closed
	o.Tracking = r.group.Tracking() // the sandbox may have changed it
	if a.target.Order.InSignalDomain && o.Enforcement.Protections[platform.Signals].Status == platform.Enforced {
		o.Tracking = o.Tracking.InSignalDomain()
	}
	if o.Confined {
		a.limit()
		o.Lost = lostGrants(a.policy, o.Enforcement.Missing)
	}
	if a.watchErr != nil {
		// The editor's own watches may have used up the user's
		// fs.inotify.max_user_watches.
		o.Enforcement.Warnings = append(o.Enforcement.Warnings,
			fmt.Sprintf("protected paths are checked only when the session ends: %v", a.watchErr))
	}
	o.Enforcement.Warnings = append(o.Enforcement.Warnings, a.warnings...)
}
