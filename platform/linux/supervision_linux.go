package linux

import (
	"errors"
	"fmt"
	"runtime"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/linux/audit"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/linux/denials"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/linux/notify"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/linux/seccomp"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/linux/sockets"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
)

// supervision is what the sidecar does for one session; see
// platform.Supervision.
type supervision struct {
	session  *notify.Session
	mediator *sockets.Mediator // nil where Landlock decides about sockets
	observer *denials.Observer // nil where nobody wants to hear of denials
	logged   *audit.Watch      // nil where the audit log is not read
	once     sync.Once         // for Close
}

// confine completes a ruleset by what has to be found out here, and prepares
// the supervision.
func confine(r Ruleset, p *policy.Policy, hooks platform.Hooks) (platform.Confinement, error) {
	if r.FS&fsConnect == 0 {
		if err := mediationAvailable(); err != nil {
			r.MediationGap = err.Error()
		} else {
			r.Filtering.Sockets, r.Network = true, networkNamespace()
		}
	}
	if err := listenerAvailable(); err != nil {
		r.SupervisionGap = err.Error()
	} else {
		r.Filtering.Priorities = true
	}
	r.Filtering.Offline = r.offline()
	if r.Requested.Denials && hooks.Denied != nil {
		r.observe(p.OnDenied == policy.Ask || hooks.Learn != nil)
		if hooks.Learn == nil {
			r.readLog()
		}
	}
	if hooks.Learn != nil && r.Filtering.Observed != seccomp.ObservedAll {
		return platform.Confinement{}, fmt.Errorf("%w: what is refused cannot be seen: %s", platform.ErrUnavailable,
			r.ObservationGap)
	}
	granted := r.grantSockets(p)
	confinement, err := prepare(r)
	if err != nil {
		return platform.Confinement{}, err
	}
	if r.Filtering.Supervised() {
		confinement.Supervise = func(handover platform.Handover) (platform.Supervision, error) {
			return r.supervise(p, granted, handover, hooks)
		}
	}
	return confinement, nil
}

// observe lets the filter send what can be refused to an observer, where there
// can be one.
func (r *Ruleset) observe(readings bool) {
	if err := observationAvailable(); err != nil {
		r.ObservationGap = err.Error()
		return
	}
	r.Filtering.Observed = seccomp.ObservedNamed
	if readings {
		r.Filtering.Observed = seccomp.ObservedAll
	}
	r.Filtering.Isolated = r.Namespaces != nil && r.Namespaces.Network
}

// supervise takes over a session under this ruleset.
func (r Ruleset) supervise(
	p *policy.Policy, grants sockets.Grants, handover platform.Handover, hooks platform.Hooks,
) (platform.Supervision, error) {
	s := &supervision{}
	filtering := r.Filtering
	handlers := map[string]notify.Handler{}
	if filtering.Sockets {
		var err error
		if s.mediator, err = sockets.New(grants, handover.Diag); err != nil {
			handover.Listener.Close()
			return nil, err
		}
		handlers["connect"] = notify.Handler{Handle: s.mediator.Connect}
		handlers["bind"] = notify.Handler{Handle: s.mediator.Bind}
	}
	if filtering.Observed != seccomp.ObservedNone {
		s.observer = denials.New(denials.Options{
			Policy: inEffect(p, r), Signals: r.Scoped&scopeSignal != 0 &&
				!r.Logged, ChangesOnly: filtering.Observed == seccomp.ObservedChanges,
			Report: hooks.Denied, Ask: hooks.Ask, Learn: hooks.Learn != nil, Canary: observedCanary(handover.PID),
		})
		if s.mediator != nil {
			s.mediator.OnRefused = s.observer.ConnectUnix
		}
		look(s.observer, filtering, handlers)
	}
	if filtering.Priorities {
		prioritise(handlers, membersOf(handover.PID, r.Namespaces != nil))
	}
	table, err := byNumber(handlers)
	if err == nil {
		s.session, err = notify.Supervise(handover.Listener, table)
	} else {
		handover.Listener.Close()
	}
	if err != nil {
		s.close()
		return nil, err
	}
	if r.Logged {
		s.logged = watchLog(handover.PID, filtering.Observed == seccomp.ObservedChanges, hooks)
	}
	return s, nil
}

// byNumber gives each call the numbers by which a session may make it.
func byNumber(handlers map[string]notify.Handler) (map[notify.Key]notify.Handler, error) {
	table := map[notify.Key]notify.Handler{}
	for call, handler := range handlers {
		numbers, err := seccomp.Numbers(runtime.GOARCH, call)
		if err != nil {
			return nil, err
		}
		for _, number := range numbers {
			table[notify.Key{Arch: number.Arch, Number: number.Nr}] = handler
		}
	}
	return table, nil
}

// Close implements platform.Supervision.
func (s *supervision) Close() error {
	var err error
	s.once.Do(func() {
		err = s.session.Close()
		s.close()
	})
	return err
}

// close gives back what belongs to nobody else.
func (s *supervision) close() {
	if s.logged != nil {
		s.logged.Close()
	}
	if s.mediator != nil {
		s.mediator.Close()
	}
	if s.observer != nil {
		s.observer.Close()
	}
}

// mediationAvailable says why Unix sockets cannot be watched over here, in
// words a user can act on, or nil.
var mediationAvailable = sync.OnceValue(func() error {
	if err := observationAvailable(); err != nil {
		return err
	}
	mediator, err := sockets.New(sockets.Grants{}, nil)
	if err != nil {
		return fmt.Errorf("the session's own sockets cannot be told from others (CONFIG_UNIX_DIAG): %w", err)
	}
	mediator.Close()
	return nil
})

// MustAdopt reports whether this process has to stay an ancestor of what its
// sessions start, so that their calls can be answered.
func MustAdopt() bool { return notify.OnlyDescendants() }

// tryListener installs a filter that does nothing, on a thread that is thrown
// away: nothing else tells whether somebody listens to this process already, as
// some container engines do.
func tryListener(flags uintptr) (err error) {
	notify.OnThread(func() {
		if err = unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
			err = fmt.Errorf("set no_new_privs: %w", err)
			return
		}
		err = seccomp.TryInstall(flags)
	})
	if errors.Is(err, unix.EBUSY) {
		return fmt.Errorf("the sidecar's own system calls are supervised by somebody else, and there can be only one: %w",
			err)
	}
	return err
}

// networkNamespace names that of the calling process, and is 0 where it cannot
// be told.
func networkNamespace() uint64 {
	var stat unix.Stat_t
	if unix.Stat("/proc/self/ns/net", &stat) != nil {
		return 0
	}
	return stat.Ino
}
