package spawn

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/lifecycle"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
)

// Spawner starts sessions. Its methods may be called from several goroutines.
type Spawner struct {
	// Backend confines.
	Backend platform.Backend
	// Tracker holds the processes of a session together.
	Tracker Tracker
	// Logger takes what went wrong after a session's end; nil discards it.
	Logger *slog.Logger
	// Standby lets a stage be started before it is needed, for a session like the
	// last one. Close must be called then.
	Standby bool

	pool standbyPool
}

func (s *Spawner) log() *slog.Logger {
	if s.Logger == nil {
		return slog.New(slog.DiscardHandler)
	}
	return s.Logger
}

// Outcome says what a session really got.
type Outcome struct {
	// Confined is true where the kernel confines the session.
	Confined bool
	// Unconfinable says why not, where the policy asked for it and goes
	// without; nil otherwise.
	Unconfinable error
	// Enforcement is the stage's report; empty where Confined is false.
	Enforcement platform.Enforcement
	// Tracking says how its processes are held together.
	Tracking lifecycle.Tracking
	// Dropped are the names of the variables that the policy kept out.
	Dropped []string
}

// Protections says for each protection how far it holds; see
// platform.Protections.
type Protections = map[string]platform.Protection

// Probe says what this machine can enforce, process tracking included.
func (s *Spawner) Probe(ctx context.Context) Protections {
	protections := s.Backend.Probe(ctx)
	protections[platform.ProcessTracking] = trackingProtection(s.Tracker.Tracking())
	return protections
}

// Platform is the operating system's name.
func (s *Spawner) Platform() string { return s.Backend.Name() }

// Protections are what confines a session with this outcome, process tracking
// included.
func (o Outcome) Protections() Protections {
	if !o.Confined {
		return Protections{}
	}
	protections := Protections{platform.ProcessTracking: trackingProtection(o.Tracking)}
	for name, protection := range o.Enforcement.Protections {
		protections[name] = protection
	}
	return protections
}

// Full reports whether everything that the policy asks for is enforced.
func (o Outcome) Full() bool {
	return o.Confined && platform.Enforcement{Protections: o.Protections()}.Full()
}

func trackingProtection(t lifecycle.Tracking) platform.Protection {
	status := platform.Enforced
	if !t.Guarantee {
		status = platform.Degraded
	}
	return platform.Protection{Status: status, Mechanism: t.Mechanism, Detail: t.Detail, Fix: t.Fix}
}

// Start starts a session on a terminal of its own. It returns once the leader
// was executed; nothing is sent anywhere before Begin. On an error, which is an
// *Error, nothing is left running.
func (s *Spawner) Start(ctx context.Context, request Request) (*Session, error) {
	if err := request.check(); err != nil {
		return nil, err
	}
	var master *os.File
	running, err := s.start(ctx, request, func(target *platform.Target) (func(), error) {
		if master != nil {
			master.Close() // of a start that is repeated
		}
		var err error
		var release func()
		master, release, err = setTerminal(target, request)
		return release, err
	})
	switch {
	case err != nil && master != nil:
		master.Close()
		return nil, err
	case err != nil:
		return nil, err
	case master == nil:
		master = running.terminal
	}
	return newSession(request, running, master), nil
}

// setTerminal gives a target its terminal, of which it returns the master; nil
// where the stage opens it. What release closes belongs to the started process
// alone.
func setTerminal(target *platform.Target, request Request) (master *os.File, release func(), err error) {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return nil, nil, &Error{Attempt: "open", Path: os.DevNull, Cause: cause(err)}
	}
	target.Attr = &syscall.SysProcAttr{Setsid: true}
	target.Streams = [3]*os.File{null, null, null}
	if target.Confinement.OwnTerminal {
		cols, rows := request.Size.clamp()
		target.Order.Terminal = &platform.Terminal{Cols: cols, Rows: rows, NoInput: request.NoInput}
		return nil, func() { null.Close() }, nil
	}
	master, terminal, err := openTerminal(request.Size)
	if err != nil {
		null.Close()
		return nil, nil, &Error{Attempt: "open a terminal", Cause: err, Hint: "close terminals, or raise kernel.pty.max"}
	}
	target.Streams[1], target.Streams[2] = terminal, terminal
	if !request.NoInput {
		target.Streams[0] = terminal
	}
	// Ctty is a descriptor as numbered in the child: standard output is the
	// terminal in any case.
	target.Attr.Setctty, target.Attr.Ctty = true, 1
	return master, func() {
		null.Close()
		terminal.Close() // or the end of its output would never be seen
	}, nil
}

// running is a started leader with what belongs to it.
type running struct {
	process        lifecycle.Process
	group          lifecycle.Group
	terminal       *os.File             // the master, where the stage has opened the terminal
	kept           []*os.File           // closed with the group
	supervision    platform.Supervision // nil where the session needs none
	supervisionEnd sync.Once            // for endSupervision
	protection     *protectionWatch     // nil where nothing is restricted
	denials        *denialQueue         // nil where nobody wants to hear of any
	inSignalDomain bool                 // the stage was ordered to enter a signal domain
	dirless        bool                 // it was to have a private runtime directory, and none can be made
	outcome        Outcome
	startedAt      time.Time
	tracker        Tracker
	log            *slog.Logger
}

// kill ends every process of the group; see lifecycle.Group.
func (r *running) kill(ctx context.Context) (killed int, err error) {
	return r.group.Kill(ctx)
}

// endSupervision ends the supervision, which may have to wait for the last denials,
// and with that the denials. Only the first time counts.
func (r *running) endSupervision() {
	r.supervisionEnd.Do(func() {
		if r.supervision != nil {
			if err := r.supervision.Close(); err != nil {
				r.log.Warn("supervision of a session not ended", "error", err)
			}
		}
		r.denials.end()
	})
}

// release gives back what the leader's processes no longer need. The group must
// be empty, or else killErr says who has survived. What cannot be given back is
// logged: it is no reason to tell anybody that a session has not ended.
func (r *running) release(killErr error) {
	r.protection.end()
	r.endSupervision()
	for _, file := range r.kept {
		file.Close()
	}
	if killErr != nil {
		r.log.Error("processes of a session are left; it goes on being killed", "error", killErr)
		r.tracker.Linger(r.group)
		return
	}
	if err := r.group.Close(); err != nil {
		r.log.Warn("group of processes not given back", "error", err)
	}
}

// abandon ends what a failed start has left. A start can fail when the program
// was executed already and has started others: where it is given up just then.
func (r *running) abandon() {
	ctx, cancel := context.WithTimeout(context.Background(), killTimeout)
	defer cancel()
	_, err := r.kill(ctx)
	r.release(err)
}

// startIn is the one road to a running process, whatever its streams are: they
// are set by streams, which returns what closes them here. With a stage that
// was started ahead, which it uses up, the error wraps errRetry where that one
// is not to be had.
func (s *Spawner) startIn(
	ctx context.Context, request Request, streams func(*platform.Target) (release func(), err error), standby *standbyStage,
) (_ *running, err error) {
	run := &running{tracker: s.Tracker, log: s.log()}
	if standby != nil {
		run.group = standby.group
	} else if run.group, err = s.Tracker.NewGroup(request.ID); err != nil {
		return nil, &Error{Attempt: "track processes", Cause: err}
	}
	group := run.group
	run.outcome.Tracking = group.Tracking()
	defer func() {
		if err == nil {
			return
		}
		if standby != nil {
			standby.stage.Drop()
		}
		run.abandon()
	}()
	target := platform.Target{
		Order: platform.Order{Program: request.Program, Argv: request.Argv, Dir: request.Dir},
		Start: group.Start,
	}
	runtimeDir := ""
	var unwatched []string
	if request.Policy.Restricted || request.Policy.TrackBySandbox {
		if runtimeDir, err = s.confine(run, &target, request); err != nil {
			return nil, err
		}
	}
	if standby != nil && standby.standbyKey != target.Confinement.StandbyKey {
		return nil, errRetry
	}
	target.Order.Env, run.outcome.Dropped = request.environment(runtimeDir)
	if run.dirless { // or it would be the user's own
		target.Order.Env = slices.DeleteFunc(target.Order.Env, func(entry string) bool {
			name, _, _ := strings.Cut(entry, "=")
			return slices.Contains(runtimeVariables, name)
		})
	}
	release, err := streams(&target)
	if err != nil {
		return nil, err
	}
	defer release()
	// The stage confines itself meanwhile.
	var watching sync.WaitGroup
	if request.Policy.Restricted {
		watching.Go(func() {
			var watchErr error
			if run.protection, watchErr = newProtectionWatch(&request.Policy, target.Confinement.Watch); watchErr != nil {
				// The editor's own watches may have used up what the user may
				// have (fs.inotify.max_user_watches).
				unwatched = []string{fmt.Sprintf("protected paths are looked at only in the end: %v", watchErr)}
			}
		})
	}
	if target.Settled = watching.Wait; target.Order.Terminal == nil {
		watching.Wait() // a stage that hands over nothing does not wait
	}
	launched, err := s.launch(ctx, target, standby)
	watching.Wait()
	if err != nil {
		return nil, launchError(request, err)
	}
	s.pool.want(s, target.Confinement)
	run.process, run.startedAt = launched.Process, time.Now()
	run.terminal, run.kept, run.supervision = launched.Terminal, launched.HeldFiles, launched.Supervision
	run.outcome.Confined = request.Policy.Restricted && target.Confinement.Orders != nil
	run.outcome.Tracking = group.Tracking() // the sandbox may have changed it
	run.outcome.Enforcement = launched.Enforcement
	run.outcome.Tracking = run.held()
	run.outcome.Enforcement.Warnings = append(run.outcome.Enforcement.Warnings, unwatched...)
	if run.dirless {
		run.outcome.Enforcement.Warnings = append(run.outcome.Enforcement.Warnings, noRuntimeDir)
	}
	return run, nil
}

// noRuntimeDir is what a session's user is told that was to have a private
// runtime directory.
const noRuntimeDir = "no private runtime directory: the sidecar's state directory cannot be written; " +
	"XDG_RUNTIME_DIR is not set"

// held is the group's tracking by what the sandbox adds to it: a signal domain
// holds a session that can never signal its subreaper, as was reported from
// inside.
func (r *running) held() lifecycle.Tracking {
	tracking := r.outcome.Tracking
	if r.inSignalDomain && r.outcome.Enforcement.Protections[platform.Signals].Status == platform.Enforced {
		return tracking.InSignalDomain()
	}
	return tracking
}

// launch executes a target in the stage that was started ahead, or in one of
// its own.
func (s *Spawner) launch(ctx context.Context, target platform.Target, standby *standbyStage) (platform.Launched, error) {
	if standby == nil {
		launched, err := platform.Launch(ctx, s.Backend, target)
		if err != nil && target.Confinement.InvalidateGuess != nil && ctx.Err() == nil && unconfined(err) {
			target.Confinement.InvalidateGuess()
			err = fmt.Errorf("%w: %w", errRetry, err)
		}
		return launched, err
	}
	launched, err := standby.stage.Launch(ctx, target)
	if (errors.Is(err, platform.ErrStageDied) || errors.Is(err, platform.ErrStageSilent)) && ctx.Err() == nil {
		err = fmt.Errorf("%w: %w", errRetry, err) // somebody has killed or stopped it while it waited
	}
	return launched, err
}

// unconfined reports whether a stage was not even confined.
func unconfined(err error) bool {
	var failure *platform.Failure
	return !errors.As(err, &failure) || failure.Step == platform.StepConfine
}

// confine prepares the sandbox that the policy asks for, and the session's
// private runtime directory, whose path it returns.
func (s *Spawner) confine(run *running, target *platform.Target, request Request) (runtimeDir string, err error) {
	p := request.Policy
	asked := &p
	if p.Restricted && p.PrivateRuntimeDir {
		if runtimeDir, err = run.group.MakeDir(); err != nil {
			// The session gets none, which is less than it was to have, and
			// opens nothing.
			run.log.Warn("no private runtime directory for a session", "error", err)
			run.dirless = true
		} else {
			asked = withRuntimeDir(asked, runtimeDir)
		}
	}
	hooks := platform.Hooks{}
	if mark, ok := run.group.(lifecycle.Marked); ok {
		hooks.Mark = mark
	}
	if p.Restricted && p.OnDenied != policy.Ignore {
		run.denials = newDenialQueue(maxDenials)
		if request.Learn != nil {
			run.denials = newDenialQueue(maxLearnt)
			hooks.Learn = request.Learn
		}
		hooks.Denied, hooks.Missed = run.denials.put, run.denials.miss
		if request.Ask != nil && (p.OnDenied == policy.Ask || request.Learn != nil) {
			hooks.Ask = func(ctx context.Context, d platform.Denial) Answer { return request.Ask(ctx, Denial{Denial: d}) }
		}
	}
	if target.Confinement, err = s.Backend.Confine(asked, hooks); err != nil {
		target.Confinement = platform.Confinement{}
		if !p.Restricted {
			// Nothing was to be refused, and the reply says how the session is
			// tracked instead.
			run.log.Warn("session is not tracked by a sandbox", "error", err)
			return "", nil
		}
		if refusal := unavailable(asked, err); refusal != nil {
			return "", refusal
		}
		run.outcome.Unconfinable = err
		return runtimeDir, nil
	}
	if p.Restricted {
		run.inSignalDomain = useSignalDomain(run.group)
		target.Order.InSignalDomain = run.inSignalDomain
	}
	return runtimeDir, nil
}

// useSignalDomain has the kernel hold a group's processes together, where it
// can and nothing else does, and reports whether it will, once the stage was
// ordered to.
func useSignalDomain(group lifecycle.Group) bool {
	capable, ok := group.(lifecycle.SignalDomainGroup)
	return ok && capable.UseSignalDomain()
}

func withRuntimeDir(p *policy.Policy, dir string) *policy.Policy {
	extended := *p
	extended.Rules = append(slices.Clone(p.Rules), policy.Rule{
		Path: dir, Access: policy.ReadWrite, Origin: policy.Origin{File: policy.OriginSession,
			Key: "private runtime directory"},
	})
	return &extended
}

func launchError(request Request, err error) error {
	if errors.Is(err, errRetry) {
		return err // nobody sees it: the session is started once more
	}
	var failure *platform.Failure
	if !errors.As(err, &failure) {
		return &Error{Attempt: "start session", Cause: err}
	}
	switch failure.Step {
	case platform.StepConfine:
		return &Error{
			Attempt: "confine session", Cause: fmt.Errorf("%w: %s", ErrUnavailable, failure.Cause),
			Hint: `run "sandbox-sidecar doctor" to see what this machine can enforce`,
		}
	case platform.StepProgram:
		hint := "install it, or name another program"
		if failure.Denied && request.Policy.Restricted {
			hint = "grant its directory in additional_executable_paths"
		}
		return &Error{Attempt: "execute", Path: failure.Path, Cause: errors.New(failure.Cause), Hint: hint}
	default:
		return &Error{Attempt: string(failure.Step), Path: failure.Path, Cause: errors.New(failure.Cause)}
	}
}

// openTerminal opens a PTY that has its size, and knows that text is UTF-8,
// before anything is written to it.
func openTerminal(size Size) (master, terminal *os.File, err error) {
	master, terminal, err = pty.Open()
	if err != nil {
		return nil, nil, err
	}
	if err = setSize(master, size); err == nil {
		err = setUTF8(terminal)
	}
	if err == nil {
		// pty.Open leaves the master in blocking mode (it asks for its Fd),
		// where deadlines have no effect: a read that gathers output would wait
		// for the next output, and at the end of a session nothing would end
		// it.
		err = control(master, func(fd int) error { return unix.SetNonblock(fd, true) })
	}
	if err != nil {
		master.Close()
		terminal.Close()
		return nil, nil, err
	}
	return master, terminal, nil
}
