// Package record notes what one session does for the audit trail.
package record

import (
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/audit"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/review"
)

const (
	// maxFolded bounds the different accesses that are remembered, and maxListed
	// the files of a review.
	maxFolded = 1024
	maxListed = 50
	// silence is how long repetitions are counted before a line has their number.
	silence = time.Minute
)

// Session notes what one session does. A nil one notes nothing. Its methods may
// be called from several goroutines; only Acknowledged and NotStarted wait.
type Session struct {
	to       policy.Audit
	recorder audit.Recorder
	id       string
	project  string
	kind     string

	acknowledged chan struct{} // closed once err is set
	err          error

	mu     sync.Mutex // guards what follows
	folded map[string]*folded
	order  []*folded
	more   map[string]int // what was not remembered, by the kind of event
}

// folded is an access with its repetitions that no line has yet.
type folded struct {
	event   audit.Event
	written time.Time // of the last line
}

// Begin notes that a program is about to be started: event is the line, which
// gets its kind here, and complete adds to it what takes a while. It returns nil
// if there is no trail.
func Begin(recorder audit.Recorder, to policy.Audit, event audit.Event, complete func(*audit.Event)) *Session {
	if recorder == nil || !to.On() {
		return nil
	}
	s := &Session{
		to: to, recorder: recorder, id: event.Session, project: event.Project, kind: event.Kind,
		acknowledged: make(chan struct{}), folded: map[string]*folded{}, more: map[string]int{},
	}
	event.Event = audit.Spawn
	go func() {
		defer close(s.acknowledged)
		complete(&event)
		s.err = recorder.Record(to, event)
	}()
	return s
}

// Acknowledged waits until the first line is queued, and written if that is
// required. After an error the program must not be executed.
func (s *Session) Acknowledged() error {
	if s == nil {
		return nil
	}
	<-s.acknowledged
	return s.err
}

func (s *Session) put(event audit.Event) {
	event.Session, event.Project, event.Kind = s.id, s.project, s.kind
	_ = s.recorder.Record(s.to, event) // what is lost is counted
}

// Started notes that the program runs.
func (s *Session) Started(pid int, confined bool, protections map[string]platform.Protection) {
	if s == nil {
		return
	}
	event := audit.Event{Event: audit.Started, PID: pid, Confined: &confined, Protections: map[string]string{}}
	for name, protection := range protections {
		event.Protections[name] = string(protection.Status)
		if protection.NotRequested {
			event.Protections[name] = "not_requested"
		}
	}
	s.put(event)
}

// NotStarted notes why the program does not run.
func (s *Session) NotStarted(err error) {
	if s == nil {
		return
	}
	<-s.acknowledged // it may have failed before anybody waited for that
	s.put(audit.Event{Event: audit.NotStarted, Error: err.Error()})
}

// Denied notes an access that was refused.
func (s *Session) Denied(d platform.Denial) {
	if s == nil || d.Source == platform.SourceOutput { // which anybody can print
		return
	}
	s.fold(audit.Event{
		Event: audit.Refused, Access: string(d.Access), Target: d.Target, Process: d.Process, Detail: d.Greeting,
		Count: d.Count,
	})
}

// Connected notes a connection to a host, "host:port".
func (s *Session) Connected(target, process string) {
	if s != nil {
		s.fold(audit.Event{Event: audit.Connected, Target: target, Process: process, Count: 1})
	}
}

// Answered notes an answer to a question.
func (s *Session) Answered(d platform.Denial, answer platform.Answer) {
	if s == nil {
		return
	}
	word := "deny"
	switch answer {
	case platform.AnswerOnce:
		word = "once"
	case platform.AnswerSession:
		word = "session"
	}
	s.put(audit.Event{Event: audit.Asked, Access: string(d.Access), Target: d.Target, Process: d.Process, Answer: word})
}

// Alarm notes what happened to a protected path.
func (s *Session) Alarm(alarm platform.Alarm) {
	if s != nil {
		s.put(audit.Event{Event: audit.Review, Changed: []audit.Change{{Path: alarm.Path, How: string(alarm.Kind)}}})
	}
}

// Ended notes the end of the session, after what it was refused and has changed.
func (s *Session) Ended(code int, signal syscall.Signal, survivors bool, findings []review.Finding) {
	if s == nil {
		return
	}
	s.flush()
	if len(findings) > 0 {
		event := audit.Event{Event: audit.Review}
		for _, f := range findings[:min(len(findings), maxListed)] {
			event.Changed = append(event.Changed, audit.Change{
				Path: f.Path, How: string(f.How), Others: max(0, f.Total-1),
			})
		}
		event.More = len(findings) - len(event.Changed)
		s.put(event)
	}
	event := audit.Event{Event: audit.Ended, Survivors: survivors}
	if signal != 0 {
		event.Signal = unix.SignalName(signal)
	} else {
		event.ExitCode = &code
	}
	s.put(event)
}

// fold writes a line for the first access of its kind, and one for the
// repetitions of each minute.
func (s *Session) fold(event audit.Event) {
	now := time.Now().UTC()
	key := event.Event + "\x00" + event.Access + "\x00" + event.Target + "\x00" + event.Process + "\x00" + event.Detail
	s.mu.Lock()
	f := s.folded[key]
	switch {
	case f == nil && len(s.order) == maxFolded:
		s.more[event.Event] += event.Count
		s.mu.Unlock()
		return
	case f == nil:
		f = &folded{event: event}
		f.event.Count = 0
		s.folded[key], s.order = f, append(s.order, f)
	}
	if f.event.Count == 0 {
		f.event.First = &now
	}
	f.event.Count, f.event.Last = f.event.Count+event.Count, &now
	if now.Sub(f.written) < silence {
		s.mu.Unlock()
		return
	}
	line := f.take(now)
	s.mu.Unlock()
	s.put(line)
}

// take returns what no line has yet.
func (f *folded) take(now time.Time) audit.Event {
	line := f.event
	f.event.Count, f.event.First, f.event.Last, f.written = 0, nil, nil, now
	return line
}

// flush writes the repetitions that no line has yet.
func (s *Session) flush() {
	now := time.Now().UTC()
	s.mu.Lock()
	var lines []audit.Event
	for _, f := range s.order {
		if f.event.Count > 0 {
			lines = append(lines, f.take(now))
		}
	}
	for kind, more := range s.more {
		lines = append(lines, audit.Event{Event: kind, More: more})
	}
	clear(s.more)
	s.mu.Unlock()
	for _, line := range lines {
		s.put(line)
	}
}
