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

// protectionWatch notices, for one session, what happens to protected paths and to
// whatever else programs outside act upon. A nil one notices nothing.
type protectionWatch struct {
	watching platform.Watcher // nil where nothing can be watched, or need be
	before   *review.State

	mu       sync.Mutex // guards the fields below
	changed  sync.Cond
	alarms   []Alarm // not yet taken
	ended    bool
	findings []Finding // set by end
}

// newProtectionWatch looks at the project as it is, and starts to watch. What cannot be
// watched is in the error; the rest is noticed all the same.
func newProtectionWatch(p *policy.Policy, watch func(func(platform.Alarm)) (platform.Watcher, error)) (*protectionWatch, error) {
	w := &protectionWatch{before: review.Take(p)}
	w.changed.L = &w.mu
	if watch == nil {
		return w, nil
	}
	watching, err := watch(w.raise)
	if err != nil {
		return w, err
	}
	w.watching = watching
	return w, nil
}

func (w *protectionWatch) raise(alarm platform.Alarm) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.alarms = append(w.alarms, alarm)
	w.changed.Signal()
}

// next waits for an alarm; false once there will be none.
func (w *protectionWatch) next() (Alarm, bool) {
	if w == nil {
		return Alarm{}, false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for len(w.alarms) == 0 && !w.ended {
		w.changed.Wait()
	}
	if len(w.alarms) == 0 {
		return Alarm{}, false
	}
	alarm := w.alarms[0]
	w.alarms = w.alarms[1:]
	return alarm, true
}

// end looks for the last time, and returns what has changed since the
// beginning. The session's processes must be gone.
func (w *protectionWatch) end() []Finding {
	if w == nil {
		return nil
	}
	if w.watching != nil {
		w.watching.Close() // which may raise the last alarms
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.ended {
		w.ended = true
		w.findings = w.before.Findings()
	}
	w.changed.Broadcast()
	return w.findings
}

// reviewed is what the first end has found; nil before that.
func (w *protectionWatch) reviewed() []Finding {
	if w == nil {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.findings
}
