package linux

import (
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/handshake"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/linux/canary"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/linux/denials"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/linux/localhost"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/linux/network"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/linux/notify"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/linux/seccomp"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/linux/sockets"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/linux/stage"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
)

// supervision is what the sidecar does for one session; see
// platform.Supervision.
type supervision struct {
	session  *notify.Session
	mediator *sockets.Mediator  // nil if Landlock decides about sockets
	observer *denials.Observer  // nil if no denials are reported
	network  *network.Connector // nil if no hosts can be reached
	// seesChanges: the observer is asked about every call that may change a file.
	seesChanges bool
	once        sync.Once // for Close
}

// confine adds to a ruleset what depends on this machine, and returns the
// confinement with its supervision.
func confine(
	r ruleset, p *policy.Policy, notes *localhost.Notes, hooks platform.Hooks,
) (platform.Confinement, error) {
	r.planLocalhost()
	if r.FS&stage.FSConnect == 0 && !r.Filtering.Sockets {
		if err := mediationAvailable(); err != nil {
			r.MediationGap = err.Error()
		} else {
			r.Filtering.Sockets, r.Network = true, stage.NetworkNamespace()
		}
	}
	if err := listenerAvailable(); err != nil {
		r.SupervisionGap = err.Error()
	} else {
		r.Filtering.Priorities = true
	}
	r.Filtering.Offline = r.offline()
	if r.Requested.Denials && hooks.Denied != nil {
		r.observeDenials(p.OnDenied == policy.Ask || hooks.Learn != nil)
	}
	changes := len(p.GitDirs)+len(denials.Missing(p)) > 0 || r.Namespaces != nil && len(denials.GitConfigs(p)) > 0
	if r.Filtering.Observed == seccomp.ObservedNone && changes && observationAvailable() == nil {
		r.Filtering.Observed, r.Unreported = seccomp.ObservedCreations, true
		hooks.Denied, hooks.Ask = func(platform.Denial) {}, nil
	}
	if hooks.Learn != nil && r.Filtering.Observed != seccomp.ObservedAll {
		return platform.Confinement{}, fmt.Errorf("%w: denials cannot be observed: %s", platform.ErrUnavailable,
			r.ObservationGap)
	}
	granted := r.grantSockets(p)
	confinement, err := prepare(r)
	if err != nil {
		return platform.Confinement{}, err
	}
	if r.Requested.ProtectedPaths {
		confinement.Watch = watchProtected(p, r.Namespaces != nil, r.Filtering.Observed != seccomp.ObservedNone)
	}
	if r.Filtering.Supervised() {
		confinement.Descriptors = append(confinement.Descriptors, r.descriptors()...)
		confinement.Prepare = func(pid int) any { return r.gather(p, pid) }
		confinement.Supervise = func(handover platform.Handover) (platform.Supervision, error) {
			return r.supervise(p, granted, notes, handover, hooks)
		}
	}
	return confinement, nil
}

// descriptors are those that the stage passes for supervise.
func (r ruleset) descriptors() []platform.Descriptor {
	list := []platform.Descriptor{{Kind: canary.PassedListener, Required: true}, {Kind: canary.PassedDiag}}
	if r.Namespaces != nil && r.Namespaces.Hosts {
		for _, kind := range []handshake.Passed{
			canary.PassedResolverUDP, canary.PassedResolverTCP, canary.PassedRelay,
		} {
			list = append(list, platform.Descriptor{Kind: kind, Required: true})
		}
	}
	return list
}

// observeDenials lets the filter send calls that may be refused to an observer,
// if this machine can have one. reads adds all opens for reading.
func (r *ruleset) observeDenials(reads bool) {
	if err := observationAvailable(); err != nil {
		r.ObservationGap = err.Error()
		return
	}
	r.Filtering.Observed = seccomp.ObservedNamed
	if reads {
		r.Filtering.Observed = seccomp.ObservedAll
	}
	r.Filtering.Isolated = r.Namespaces != nil && r.Namespaces.Network
}

// facts are what a supervision has to find out about its session, once the
// stage has been started.
type facts struct {
	effective *policy.Policy     // nil if denials are not observed
	missing   []policy.Protected // protected paths that do not exist, if denials are observed
	configs   []string           // see denials.GitConfigs; none if nothing else protects them
	members   members            // set if priorities are checked
	existence existence          // the same
}

func (r ruleset) gather(p *policy.Policy, leader int) facts {
	var f facts
	if r.Filtering.Observed != seccomp.ObservedNone {
		f.effective, f.missing = effectivePolicy(p, r), denials.Missing(p)
		if r.Namespaces != nil {
			f.configs = denials.GitConfigs(p)
		}
	}
	if r.Filtering.Priorities {
		f.members, f.existence = membersOf(leader), existenceFor(leader)
	}
	return f
}

// supervise starts the supervision of a session under this ruleset. It takes
// over the files of the handover.
func (r ruleset) supervise(
	p *policy.Policy, grants sockets.Grants, notes *localhost.Notes, handover platform.Handover, hooks platform.Hooks,
) (platform.Supervision, error) {
	defer handover.Close()
	f, prepared := handover.Prepared.(facts)
	if !prepared {
		return nil, errors.New("supervise session: not prepared")
	}
	s := &supervision{}
	filtering := r.Filtering
	handlers := map[string]notify.Handler{}
	if filtering.Observed != seccomp.ObservedNone {
		s.observer = denials.New(denials.Options{
			Policy: f.effective, Signals: r.Scoped&stage.ScopeSignal != 0,
			Report: hooks.Denied, Ask: hooks.Ask, Learn: hooks.Learn != nil,
			Canary: canary.ObservedFile(handover.PID), Missing: f.missing, Own: r.ownAddresses(),
			GitConfigs: f.configs, Configured: hooks.Configured,
		})
	}
	if filtering.Hosts {
		var err error
		if s.network, err = s.connectHosts(p, handover, filtering.Shared, hooks); err != nil {
			s.close()
			return nil, err
		}
		handlers["connect"] = notify.Handler{Handle: sockets.InternetOnly(s.network.Connect)}
	}
	if filtering.Sockets {
		var err error
		if s.mediator, err = sockets.New(grants, handover.Take(canary.PassedDiag)); err != nil {
			s.close()
			return nil, err
		}
		if s.network != nil {
			s.mediator.Internet = s.network.Connect
		}
		if filtering.Shared {
			s.mediator.Datagrams = s.network
		}
		handlers["connect"] = notify.Handler{Handle: s.mediator.Connect}
		handlers["bind"] = notify.Handler{Handle: s.mediator.Bind}
	}
	if filtering.Localhost {
		guard, err := s.guardLocalhost(p, notes)
		if err != nil {
			s.close()
			return nil, err
		}
		s.mediator.Internet = guard.Connect
		handlers["listen"] = notify.Handler{Handle: guard.Listen}
	}
	if s.observer != nil {
		if s.mediator != nil {
			s.mediator.OnRefused = s.observer.ConnectUnix
		}
		observe(s.observer, filtering, handlers)
		s.seesChanges = r.seesChanges(p)
	}
	if filtering.Shared {
		s.handleShared(handlers)
	}
	if filtering.Priorities {
		if r.Namespaces != nil {
			f.members.enterMounts() // only now, as the stage makes the namespace once it has its order
		}
		f.members.aloof = r.Shared
		handlePriorities(handlers, f.members)
		f.existence.handle(handlers)
	}
	numbering, err := numberingOf(slices.Sorted(maps.Keys(handlers)))
	if err == nil {
		var decider notify.Decider
		if s.observer != nil {
			decider = denials.NewDecider(s.observer, numbering.decided)
		}
		s.session, err = notify.SuperviseWith(handover.Take(canary.PassedListener), numbering.table(handlers), decider)
	}
	if err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

// numbering gives calls their places in a list of handlers. All sessions that
// supervise the same calls share one.
type numbering struct {
	calls  []string // in the order of the list
	places map[notify.Key]int
	// decided are the observer's calls of the machine's own architecture.
	decided *denials.DecidedCalls
}

var numberings sync.Map // of *numbering, by the names of the calls

// numberingOf numbers every way in which a session can make the calls.
func numberingOf(calls []string) (*numbering, error) {
	key := strings.Join(calls, " ")
	if known, is := numberings.Load(key); is {
		return known.(*numbering), nil
	}
	n := &numbering{calls: calls, places: map[notify.Key]int{}}
	native, err := seccomp.Numbers(runtime.GOARCH, "openat")
	if err != nil {
		return nil, err
	}
	decided, modes := map[int]string{}, map[string]int{}
	for _, call := range seccomp.ModeCalls() {
		modes[call.Name] = call.Arg
	}
	known := slices.Concat(denials.Calls(), seccomp.AttributeCalls(), []string{"ioctl"})
	for place, call := range calls {
		numbers, err := seccomp.Numbers(runtime.GOARCH, call)
		if err != nil {
			return nil, err
		}
		for _, number := range numbers {
			n.places[notify.Key{Arch: number.Arch, Number: number.Nr}] = place
			if number.Arch == native[0].Arch && slices.Contains(known, call) {
				decided[number.Nr] = call
			}
		}
	}
	n.decided = denials.NewDecidedCalls(native[0].Arch, decided, modes)
	numberings.Store(key, n)
	return n, nil
}

// table replaces the name of each call by its numbers.
func (n *numbering) table(handlers map[string]notify.Handler) notify.Table {
	t := notify.Table{Places: n.places}
	for _, call := range n.calls {
		t.Handlers = append(t.Handlers, handlers[call])
	}
	return t
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

// close closes everything but the notify session.
func (s *supervision) close() {
	if s.mediator != nil {
		s.mediator.Close()
	}
	if s.network != nil {
		s.network.Close()
	}
	if s.observer != nil {
		s.observer.Close()
	}
}

// mediationAvailable returns nil if the sidecar can connect Unix sockets for a
// session on this machine; see listenerAvailable for the error.
var mediationAvailable = sync.OnceValue(func() error {
	if err := answeringAvailable(); err != nil {
		return err
	}
	mediator, err := sockets.New(sockets.Grants{}, nil)
	if err != nil {
		return fmt.Errorf("the kernel does not list Unix sockets (CONFIG_UNIX_DIAG), so own ones are unknown: %w", err)
	}
	mediator.Close()
	return nil
})

// AnsweringThreads are those that answer the system calls of sessions, at most.
// A program with many sessions starts as many before the first one.
const AnsweringThreads = notify.Threads

// MustAdopt reports whether this process must stay an ancestor of all processes
// of its sessions, because it could not answer their calls otherwise.
func MustAdopt() bool { return notify.OnlyDescendants() }

// tryListener installs a filter with these flags on a thread of its own, which
// then ends. No other way shows whether this process has a listener already, as
// in some containers.
func tryListener(flags uintptr) (err error) {
	notify.OnThread(func() {
		if err = unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
			err = fmt.Errorf("set no_new_privs: %w", err)
			return
		}
		err = seccomp.TryInstall(flags)
	})
	if errors.Is(err, unix.EBUSY) {
		return fmt.Errorf("another program, such as a container engine, supervises the sidecar's system calls: %w", err)
	}
	return err
}
