package spawn

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/sandbox-sidecar/sandbox-sidecar/lifecycle"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
)

// Outcome says what a session got, as opposed to what its request asked for.
type Outcome struct {
	// Confined is true if the kernel confines the session.
	Confined bool
	// Unconfinable says why the session runs without the sandbox that its
	// policy asks for; nil for any other session.
	Unconfinable error
	// Enforcement is the stage's report; empty if Confined is false.
	Enforcement platform.Enforcement
	// Lost are the grants that the session does not have, although their paths were
	// there before. Those of a group are the group's.
	Lost []LostGrant
	// Tracking says how the session's processes are held together.
	Tracking lifecycle.Tracking
	// Dropped are the names of the variables that the policy removed, sorted.
	Dropped []string
	// Closed are the caller's descriptors that the program was not given.
	Closed []platform.Closed
}

// Protections are what confines the session, process tracking included; empty
// if it is not confined.
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

// PreventsChanges reports whether the session can change no protected path that
// was there when it started.
func (o Outcome) PreventsChanges() bool {
	return o.Confined && o.Enforcement.Protections[platform.ProtectedPaths].PreventsChanges
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

// limit limits what the session takes of the machine, where its group can do
// that, and notes how far.
func (a *attempt) limit() {
	r, most := a.running, a.request.Policy.Limits
	r.limits.most, r.limits.whole, r.limits.again = most, a.request.Tool, a.request.shared != nil
	protections := r.outcome.Enforcement.Protections
	row, known := protections[platform.Limits]
	if group, can := r.group.(lifecycle.LimitedGroup); can {
		processes := most.Processes
		if row.Status == platform.Enforced && processes > 1 { // 0 is no limit
			processes-- // the kernel looks at RLIMIT_NPROC first, and tells nobody of that
		}
		if processes > 0 && a.request.shared != nil {
			processes += initThreads
		}
		group.Limit(lifecycle.Limits{
			Processes: processes, Memory: most.Memory.Of(lifecycle.MachineMemory()), CPUWeight: most.CPUWeight,
			Whole: a.request.Tool,
		}, r.checkLimits)
		r.outcome.Tracking.Limits = group.Tracking().Limits
	}
	if known {
		r.limits.unheard = row.Status == platform.Enforced && !r.outcome.Tracking.Limits.Processes
		protections = maps.Clone(protections)
		protections[platform.Limits] = limitsProtection(row, most, r.outcome.Tracking.Limits)
		r.outcome.Enforcement.Unheld = withUnheldLimits(r.outcome.Enforcement.Unheld, row, r.outcome.Tracking.Limits)
	}
	r.outcome.Enforcement.Protections = a.spawner.shared(protections)
}

// initThreads are what the init of a group has of processes and threads; see
// namespace.LimitProcesses.
const initThreads = 8

// limitsProtection is how far a session is limited: by its stage, which reports
// the row, and by its group. Without a request it is about any session.
func limitsProtection(row platform.Protection, most policy.Limits, group lifecycle.Limited) platform.Protection {
	if row.NotRequested || group == (lifecycle.Limited{}) {
		return row
	}
	var mechanisms, held []string
	staged := row.Status == platform.Enforced
	if staged {
		mechanisms, held = append(mechanisms, row.Mechanism), append(held, row.Detail)
	}
	if group.Processes {
		mechanisms = append(mechanisms, "cgroup (pids.max)")
		if !staged {
			held = append(held, "the processes and threads of the session are limited"+numbered(most.Processes))
		}
	}
	if group.Memory {
		mechanisms = append(mechanisms, "cgroup (memory.max)")
		held = append(held, "its memory is limited"+amount(most.Memory))
	} else {
		held = append(held, "its memory is not limited: "+group.Why)
	}
	if group.Memory && !group.CPU && group.Why != "" { // else that was the reason
		held = append(held, "its share of a busy processor is not set: "+group.Why)
	}
	limited := platform.Protection{
		Status: platform.Degraded, Mechanism: strings.Join(mechanisms, ", "), Detail: strings.Join(held, "; "),
		Fix: group.Fix,
	}
	switch processes := staged || group.Processes; {
	case processes && group.Memory:
		limited.Status, limited.Fix = platform.Enforced, ""
	case !processes && !group.Memory:
		limited.Status, limited.Detail = platform.Absent, row.Detail+"; "+limited.Detail
	case !processes:
		limited.Detail = row.Detail + "; " + limited.Detail
	}
	if row.Fix != "" && !group.Processes {
		limited.Fix = row.Fix
	}
	return limited
}

// withUnheldLimits adds the limits that do not hold to the keys of which that is
// so. The row is the stage's.
func withUnheldLimits(unheld []string, row platform.Protection, group lifecycle.Limited) []string {
	unheld = slices.Clone(unheld)
	for _, limit := range []struct {
		key   string
		holds bool
	}{
		{ProcessesKey, row.Status == platform.Enforced || group.Processes},
		{MemoryKey, group.Memory},
		{weightKey, group.CPU},
	} {
		if !limit.holds {
			unheld = append(unheld, limit.key)
		}
	}
	return unheld
}

func numbered(most int) string {
	if most == 0 {
		return ""
	}
	return fmt.Sprintf(" to %d", most)
}

func amount(m policy.Memory) string {
	if m == (policy.Memory{}) {
		return ""
	}
	return fmt.Sprintf(" to %d MB", m.Of(lifecycle.MachineMemory())>>20)
}

// Reached is a limit that a session has reached.
type Reached struct {
	// Key is that of the setting: ProcessesKey, MemoryKey or ConnectionsKey.
	Key string
	// Most is the limit: a number, or bytes.
	Most int64
	// Printed: only a program of the session said so.
	Printed bool
	// Whole: the kernel has ended the session as a whole.
	Whole bool
	// Shared: the setting allows more, and the sidecar has no more to share.
	Shared bool
}

// The keys of limits that can be reached.
const (
	ProcessesKey   = "limits.processes"
	MemoryKey      = "limits.memory"
	ConnectionsKey = "limits.connections"
)

// weightKey is that of a limit that cannot be reached.
const weightKey = "limits.cpu_weight"

// reachedLimits are the limits that a session has reached, each once. A group's are
// reported each time: sessions come and go, and each is told once.
type reachedLimits struct {
	most    policy.Limits
	whole   bool
	unheard bool // nobody tells of the limit of processes but the session's output
	again   bool // a group's

	mu    sync.Mutex // guards the fields below
	all   []Reached
	seen  lifecycle.Reached // what the group has counted
	queue chan Reached      // nil until somebody listens
	ended bool
}

// listen returns what was and will be reached, until end is called.
func (l *reachedLimits) listen() <-chan Reached {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.queue = make(chan Reached, 3) // one for each key
	for _, r := range l.all {
		l.queue <- r
	}
	return l.queue
}

func (l *reachedLimits) put(r Reached) {
	l.mu.Lock()
	defer l.mu.Unlock()
	known := slices.ContainsFunc(l.all, func(known Reached) bool { return known.Key == r.Key })
	if l.ended || known && !l.again {
		return
	}
	if !known {
		l.all = append(l.all, r)
	}
	select {
	case l.queue <- r: // blocks if it is nil
	default: // a group's observer has not yet told of what was reached before
	}
}

// more reports which limits were reached since it was asked last.
func (l *reachedLimits) more(now lifecycle.Reached) (processes, memory bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	processes, memory = now.Processes > l.seen.Processes, now.Memory > l.seen.Memory
	l.seen.Processes = max(l.seen.Processes, now.Processes)
	l.seen.Memory = max(l.seen.Memory, now.Memory)
	return processes, memory
}

// end lets the channel of listen end. It is called once.
func (l *reachedLimits) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.queue != nil {
		close(l.queue)
	}
	l.ended = true
}

func (l *reachedLimits) list() []Reached {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.all)
}

// checkLimits notes what the group says about its limits.
func (r *running) checkLimits() {
	group, can := r.group.(lifecycle.LimitedGroup)
	if !can {
		return
	}
	most := &r.limits.most
	processes, memory := r.limits.more(group.Reached())
	if processes {
		r.limits.put(Reached{Key: ProcessesKey, Most: int64(most.Processes)})
	}
	if memory {
		r.limits.put(Reached{Key: MemoryKey, Most: most.Memory.Of(lifecycle.MachineMemory()), Whole: r.limits.whole})
	}
}

// configured records an accepted change of git's configuration for the review.
func (r *running) configured(path string, keys []string) {
	r.protection.configured(path, keys)
	if r.shared != nil {
		r.shared.each(func(member *running) { member.protection.configured(path, keys) })
	}
}

// crowded notes that a connection was one too many.
func (r *running) crowded(most int, shared bool) {
	r.limits.put(Reached{Key: ConnectionsKey, Most: int64(most), Shared: shared})
}

// heardExhausted notes that a program has said that it could start no process.
// Where the kernel tells, the program need not be believed.
func (r *running) heardExhausted() {
	if r.limits.unheard {
		r.limits.put(Reached{Key: ProcessesKey, Most: int64(r.limits.most.Processes), Printed: true})
	}
}
