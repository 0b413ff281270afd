package spawn

import (
	"sync"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/review"
)

// Alarm tells that something happened to a protected path; see platform.Alarm.
type Alarm = platform.Alarm

// Finding is a file that changed while a session ran and that programs outside
// act upon; see review.Finding.
type Finding = review.Finding

// vigil notices, for one session, what happens to protected paths and to
// whatever else programs outside act upon. A nil one notices nothing.
type vigil struct {
	watching platform.Watching // nil where nothing can be watched, or need be
	before   *review.State

	mu       sync.Mutex // guards the fields below
	changed  sync.Cond
	alarms   []Alarm // not yet taken
	ended    bool
	findings []Finding // set by end
}

// newVigil looks at the project as it is, and starts to watch. What cannot be
// watched is in the error; the rest is noticed all the same.
func newVigil(p *policy.Policy, watch func(func(platform.Alarm)) (platform.Watching, error)) (*vigil, error) {
	v := &vigil{before: review.Take(p)}
	v.changed.L = &v.mu
	if watch == nil {
		return v, nil
	}
	watching, err := watch(v.raise)
	if err != nil {
		return v, err
	}
	v.watching = watching
	return v, nil
}

func (v *vigil) raise(alarm platform.Alarm) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.alarms = append(v.alarms, alarm)
	v.changed.Signal()
}

// next waits for an alarm; false once there will be none.
func (v *vigil) next() (Alarm, bool) {
	if v == nil {
		return Alarm{}, false
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	for len(v.alarms) == 0 && !v.ended {
		v.changed.Wait()
	}
	if len(v.alarms) == 0 {
		return Alarm{}, false
	}
	alarm := v.alarms[0]
	v.alarms = v.alarms[1:]
	return alarm, true
}

// end looks for the last time, and returns what has changed since the
// beginning. The session's processes must be gone.
func (v *vigil) end() []Finding {
	if v == nil {
		return nil
	}
	if v.watching != nil {
		v.watching.Close() // which may raise the last alarms
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if !v.ended {
		v.ended = true
		v.findings = v.before.Findings()
	}
	v.changed.Broadcast()
	return v.findings
}

// reviewed is what the first end has found; nil before that.
func (v *vigil) reviewed() []Finding {
	if v == nil {
		return nil
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.findings
}
