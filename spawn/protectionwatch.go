package spawn

import (
	"sync"
	"time"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/review"
	"github.com/sandbox-sidecar/sandbox-sidecar/spawn/record"
)

// Alarm reports what happened to a protected path; see platform.Alarm.
type Alarm = platform.Alarm

// Finding is a file that changed while a session ran and that programs outside
// the sandbox act on; see review.Finding.
type Finding = review.Finding

// protectionWatch reports, for one session, what happens to the protected paths
// and to other files that programs outside the sandbox act on. A nil one
// reports nothing.
type protectionWatch struct {
	watching platform.Watcher // nil if nothing can be watched, or nothing is protected
	touched  chan struct{}    // has one element if git may hold something new
	stop     chan struct{}    // closed, once, when the session ends
	stopping sync.Once
	storing  sync.WaitGroup // of watchStored
	before   *review.State
	record   *record.Session // nil if there is no audit trail

	mu           sync.Mutex // guards the fields below
	changed      sync.Cond
	wroteNothing func() bool // see suspect; nil if it is not known
	alarms       []Alarm     // not yet taken
	ended        bool
	findings     []Finding // set by review
}

// newProtectionWatch records the state of the project, and starts to watch. If
// watching fails, it returns the error and a protectionWatch that reports only
// at the end. met is Spawner.Met.
func newProtectionWatch(
	p *policy.Policy, met string, watch func(platform.Watch) (platform.Watcher, error), noted *record.Session,
) (*protectionWatch, error) {
	w := &protectionWatch{
		before: review.Take(p), record: noted, touched: make(chan struct{}, 1), stop: make(chan struct{}),
	}
	w.before.Remember(met)
	w.changed.L = &w.mu
	if watch == nil {
		return w, nil
	}
	refs := w.before.RefDirectories()
	watching, err := watch(platform.Watch{Raise: w.raise, Refs: refs, Touched: w.touch})
	if err != nil {
		return w, err
	}
	w.watching = watching
	if len(refs) > 0 {
		w.storing.Go(w.watchStored)
	}
	return w, nil
}

// since has the review tell what has changed since an earlier state. It is called
// before anything else is.
func (w *protectionWatch) since(before *review.State) {
	if before != nil {
		w.before = before
	}
}

// touch says that git may hold something new.
func (w *protectionWatch) touch() {
	select {
	case w.touched <- struct{}{}:
	default:
	}
}

// The time between a change of git's refs and a look at what they hold: many
// changes are looked at once, and looks take a twentieth of the time at most.
const (
	leastPause = time.Second
	pauseShare = 20
)

// looking is held by the one session whose refs are compared.
var looking = make(chan struct{}, 1)

// watchStored raises an alarm for each path that git holds new content for and
// that sessions have little reason to store, while the session runs: it may run
// all day, and git outside puts it in place at any time.
func (w *protectionWatch) watchStored() {
	raised := map[string]bool{}
	for wait := leastPause; ; {
		select {
		case <-w.touched:
		case <-w.stop:
			return
		}
		pause := time.NewTimer(wait)
		select {
		case <-pause.C:
		case <-w.stop:
			pause.Stop()
			return
		}
		select {
		case looking <- struct{}{}:
		case <-w.stop:
			return
		}
		begun := time.Now()
		w.lookAtStored(raised)
		wait = max(leastPause, pauseShare*time.Since(begun))
		<-looking
	}
}

// lookAtStored raises an alarm for each path that is not in raised, and adds it.
func (w *protectionWatch) lookAtStored(raised map[string]bool) {
	select {
	case <-w.touched: // what was touched meanwhile is looked at now
	default:
	}
	if w.innocent() {
		return // another program has changed it; a later change is looked at again
	}
	found, dirs := w.before.Stored(w.stop, raised)
	for _, f := range found {
		raised[f.Path] = true
		w.raise(platform.Alarm{Kind: platform.AlarmStored, Path: f.Path, Why: f.Why})
	}
	if w.watching.Refs(dirs) {
		w.touch() // something may have been made there before
	}
}

// suspect says how to find out that the session has changed no file so far.
func (w *protectionWatch) suspect(wroteNothing func() bool) {
	if w != nil {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.wroteNothing = wroteNothing
	}
}

// innocent reports whether the session has changed no file so far.
func (w *protectionWatch) innocent() bool {
	w.mu.Lock()
	wroteNothing := w.wroteNothing
	w.mu.Unlock()
	return wroteNothing != nil && wroteNothing()
}

func (w *protectionWatch) raise(alarm platform.Alarm) {
	w.record.Alarm(alarm)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.alarms = append(w.alarms, alarm)
	w.changed.Signal()
}

// next waits for an alarm. It returns false once there will be no more.
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

// configured records an accepted change of git's configuration for the review.
func (w *protectionWatch) configured(path string, keys []string) {
	if w != nil {
		w.before.Configured(path, keys)
	}
}

// end checks the protected paths for the last time. The session's processes must
// be gone.
func (w *protectionWatch) end() {
	if w == nil {
		return
	}
	if w.watching != nil {
		w.watching.Close() // which may raise the last alarms
	}
	w.stopping.Do(func() { close(w.stop) })
	w.storing.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ended = true
	w.changed.Broadcast()
}

// gone says, before review, that from now on no process of the session is left.
func (w *protectionWatch) gone() {
	if w != nil {
		w.before.Gone()
	}
}

// unwritten says, before review, that the session has changed no file.
func (w *protectionWatch) unwritten() {
	if w != nil {
		w.before.Unwritten()
	}
}

// review returns what has changed since the beginning. It may take long in a
// large project, if something was written. It is called once, after end.
// prevented says that the session could change nothing that was protected and
// there.
func (w *protectionWatch) review(prevented bool) []Finding {
	if w == nil {
		return nil
	}
	if prevented {
		w.before.Prevented()
	}
	findings := w.before.Findings()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.findings = findings
	return findings
}

// reviewed is the result of review; nil before that.
func (w *protectionWatch) reviewed() []Finding {
	if w == nil {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.findings
}
