package spawn

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"
	"sync/atomic"

	"github.com/sandbox-sidecar/sandbox-sidecar/audit"
	"github.com/sandbox-sidecar/sandbox-sidecar/fsguard"
	"github.com/sandbox-sidecar/sandbox-sidecar/lifecycle"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
	"github.com/sandbox-sidecar/sandbox-sidecar/spawn/refusals"
)

// Spawner starts sessions. Its methods may be called from several goroutines.
type Spawner struct {
	// Backend confines the sessions.
	Backend platform.Backend
	// Tracker holds the processes of a session together.
	Tracker Tracker
	// Logger gets what goes wrong when a session ends; nil discards it.
	Logger *slog.Logger
	// Standby starts a stage in advance for a session like the last one; see
	// docs/design/standby.md. The owner must call Close then.
	Standby bool
	// Recorder takes what sessions do for an audit trail; nil if nobody does.
	Recorder audit.Recorder
	// Refusals keeps what sessions are refused; nil if nobody does.
	Refusals *refusals.Book
	// Met is the directory in which reviews keep what they have met; "" for none.
	// See review.State.Remember.
	Met string
	// Credentials is the path of the program that has the secrets of sessions; "" if
	// there is none.
	Credentials string
	// Inherited are descriptors of this process above 2, by Fd and in rising
	// order, that a program in the foreground gets as far as it may. They are
	// closed once it was started.
	Inherited []*os.File

	pool    standbyPool
	listing listing
	// protections are the last session's.
	protections atomic.Pointer[Protections]
}

// Tracker makes groups of processes; *lifecycle.Tracker is one. Its methods may
// be called from several goroutines.
type Tracker interface {
	// NewGroup makes an empty group. The name must be unique and fit for a file
	// name.
	NewGroup(name string) (lifecycle.Group, error)
	// Tracking describes the mechanism that groups get.
	Tracking() lifecycle.Tracking
	// TemporaryDir returns a directory that the owner's sessions, such as those of a
	// project, have for temporary files, in a parent such as /tmp. It is removed
	// with the tracker.
	TemporaryDir(owner, parent string) (string, error)
	// Linger goes on killing a group with survivors, and closes it once it is
	// empty.
	Linger(group lifecycle.Group)
}

// Protections says for each protection how far it holds; see
// platform.Protections for the names.
type Protections = map[string]platform.Protection

// Probe says what this machine can enforce, process tracking included.
func (s *Spawner) Probe(ctx context.Context) Protections {
	protections := s.Backend.Probe(ctx)
	tracking := s.Tracker.Tracking()
	protections[platform.ProcessTracking] = trackingProtection(tracking)
	if row, known := protections[platform.Limits]; known {
		protections[platform.Limits] = limitsProtection(row, policy.Limits{}, tracking.Limits)
	}
	return protections
}

// ProbePolicy says what a session with that policy would get here, process tracking
// included. It confines a process that executes nothing and is discarded. An error
// means that this is not known.
func (s *Spawner) ProbePolicy(ctx context.Context, p policy.Policy) (Outcome, error) {
	outcome := Outcome{Tracking: s.Tracker.Tracking()}
	if !p.Restricted {
		return outcome, nil
	}
	p.Temporary = slices.Clone(p.Temporary)
	for i := range p.Temporary {
		p.Temporary[i].Source = p.Temporary[i].Path // any directory can take its place
	}
	// Some directories are made when the first session starts.
	missing := func(path string) bool {
		_, err := fsguard.Lstat(path)
		return err != nil
	}
	p.Caches = slices.DeleteFunc(slices.Clone(p.Caches), func(c policy.Cache) bool { return missing(c.Path) })
	p.Rules = slices.DeleteFunc(slices.Clone(p.Rules), func(r policy.Rule) bool { return missing(r.Path) })
	hooks := platform.Hooks{}
	if p.OnDenied != policy.Ignore {
		hooks.Denied = func(platform.Denial) {}
	}
	if p.OnDenied == policy.Ask {
		hooks.Ask = func(context.Context, platform.Denial) platform.Answer { return AnswerUnasked }
	}
	confinement, err := s.Backend.Confine(&p, hooks)
	if err != nil {
		outcome.Unconfinable = err
		return outcome, nil
	}
	outcome.Enforcement, err = platform.ProbeStage(ctx, s.Backend, confinement)
	if err != nil {
		return Outcome{}, fmt.Errorf("confine a process for a test: %w", err)
	}
	outcome.Confined = true
	e := &outcome.Enforcement
	if row, known := e.Protections[platform.Limits]; known {
		e.Unheld = withUnheldLimits(e.Unheld, row, outcome.Tracking.Limits)
		e.Protections[platform.Limits] = limitsProtection(row, p.Limits, outcome.Tracking.Limits)
	}
	return outcome, nil
}

// Platform is the operating system's name: "linux" or "darwin".
func (s *Spawner) Platform() string { return s.Backend.Name() }

// Start starts a session on a terminal or a pipe of its own. It returns once the
// leader was executed; no output reaches the caller before Session.Begin. On an
// error, which is an *Error, no process is left running.
func (s *Spawner) Start(ctx context.Context, request Request) (*Session, error) {
	if err := request.Check(); err != nil {
		return nil, err
	}
	var standby *standbyStage
	given := ownPipe
	if !request.Pipe {
		given = ownTerminal
		if request.Policy.Restricted {
			standby = s.pool.take(ctx, s)
		}
	}
	running, err := s.start(ctx, request, given, standby)
	if err != nil {
		return nil, err
	}
	return newSession(request, running, s.pool.hurry), nil
}

// Close ends the stage on standby. No session may be started any more.
func (s *Spawner) Close() { s.pool.close(s) }

// shared returns the protections of the last session, if these are the same.
// Most sessions have the same ones, whose text would be a good part of an idle
// session's memory. Nobody may change them from here on.
func (s *Spawner) shared(protections Protections) Protections {
	if last := s.protections.Load(); last != nil && maps.Equal(*last, protections) {
		return *last
	}
	s.protections.Store(&protections)
	return protections
}

func (s *Spawner) log() *slog.Logger {
	if s.Logger == nil {
		return slog.New(slog.DiscardHandler)
	}
	return s.Logger
}
