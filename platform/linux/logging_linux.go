package linux

import (
	"errors"
	"sync"
	"time"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/linux/audit"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/linux/seccomp"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/linux/stage"
)

// auditLog returns the machine's audit log, which stays open as long as this
// process lives, or why it cannot be read. Only audit.ErrOff is not final: audit
// can be switched on, and a session that starts a second later uses it.
var auditLog = untilOpen(audit.Open)

// offFor is how long audit.ErrOff is believed. To ask takes a fifth of a
// millisecond, because the kernel starts a thread that answers.
const offFor = time.Second

// untilOpen returns a function that calls open until the answer is final, and
// then repeats it. The function may be called from several goroutines.
func untilOpen(open func() (*audit.Log, error)) func() (*audit.Log, error) {
	var mu sync.Mutex
	var log *audit.Log
	var asked time.Time
	err := audit.ErrOff
	return func() (*audit.Log, error) {
		mu.Lock()
		defer mu.Unlock()
		if errors.Is(err, audit.ErrOff) && time.Since(asked) >= offFor {
			log, err = open()
			asked = time.Now()
		}
		return log, err
	}
}

// useLog lets Landlock log refusals if the sidecar can read the log. Denied reads
// are then reported from there, and no longer observed. Changes still are: the
// log has the directory of a refused change and not the name in it.
func (r *ruleset) useLog() {
	if r.ABI < stage.LoggingABI || r.Filtering.Observed == seccomp.ObservedNone {
		return
	}
	log, err := auditLog()
	if err == nil {
		err = log.Err()
	}
	if err != nil {
		r.LogGap = err.Error()
		return
	}
	r.Logged = true
	if r.Filtering.Observed == seccomp.ObservedNamed {
		r.Filtering.Observed = seccomp.ObservedChanges
	}
}

// watchLog reports denials from the log, of the session whose leader is pid. See
// loggedDenial for reads.
func watchLog(pid int, reads bool, hooks platform.Hooks) *audit.Watch {
	log, err := auditLog()
	if err != nil {
		return nil // cannot happen: useLog had it, and it is never closed
	}
	missed := hooks.Missed
	if missed == nil {
		missed = func() {}
	}
	return log.Watch(pid, func(logged audit.Denial) {
		if denial, ok := loggedDenial(logged, reads); ok {
			hooks.Denied(denial)
		}
	}, missed)
}
