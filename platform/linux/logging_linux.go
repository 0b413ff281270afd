package linux

import (
	"errors"
	"sync"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/linux/audit"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/linux/seccomp"
)

// auditLog is the machine's, as long as this process lives, or why it cannot be
// read. Audit that is off may be switched on, which the next session is to have
// the good of; what else is missing stays so.
var auditLog = untilOpen(audit.Open)

// untilOpen calls open until the answer is final, and repeats that. It may be
// called from several goroutines.
func untilOpen(open func() (*audit.Log, error)) func() (*audit.Log, error) {
	var mu sync.Mutex
	var log *audit.Log
	err := audit.ErrOff
	return func() (*audit.Log, error) {
		mu.Lock()
		defer mu.Unlock()
		if errors.Is(err, audit.ErrOff) {
			log, err = open()
		}
		return log, err
	}
}

// readLog lets Landlock log what it refuses, where that can be read, and leaves
// to the log what it tells better: an observer sees the calls of which it asks,
// and the log has what was refused. It knows directories, and not the names
// that were to change in them, so that changes stay with the observer.
func (r *Ruleset) readLog() {
	if r.ABI < loggingABI || r.Filtering.Observed == seccomp.ObservedNone {
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

// watchLog tells of what the log has of the session that the process begins.
func watchLog(pid int, readings bool, hooks platform.Hooks) *audit.Watch {
	log, err := auditLog()
	if err != nil {
		return nil // it was there when the session was prepared, and is never closed
	}
	missed := hooks.Missed
	if missed == nil {
		missed = func() {}
	}
	return log.Watch(pid, func(refusal audit.Denial) {
		if denial, ok := loggedDenial(refusal, readings); ok {
			hooks.Denied(denial)
		}
	}, missed)
}
