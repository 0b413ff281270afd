// Package record notes what one session does for the audit trail.
package record

import (
	"errors"
	"maps"
	"slices"
	"strings"
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
	// maxLines bounds the lines of accesses in a minute. What comes after that is
	// held until the minute is over, and then listed, many targets in a line.
	maxLines = 2000
	// maxBytes bounds the bytes of those lines in a minute in the same way.
	maxBytes = 1 << 20
	// maxAlarms bounds the lines about protected paths in a minute.
	maxAlarms = 500
	// maxHeld bounds the bytes of the targets that are held, as they are in lines,
	// and maxTargets those of one line's list.
	maxHeld    = 1 << 20
	maxTargets = 16 << 10
	// maxListedTarget bounds a target of a list, so that thousands have room.
	maxListedTarget = 192
	// maxRest is what a line has beside its texts.
	maxRest = 300
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
	order  []*folded // the one that is remembered for longest is the first
	minute time.Time // when the lines of the current minute began
	lines  int       // in that minute
	bytes  int       // of them
	alarms int       // lines of protected paths in that minute
	held   []*held
	room   int            // bytes of targets that may still be held
	timer  *time.Timer    // ends the minute; nil if nothing is held
	more   map[string]int // accesses and alarms that found no room, by the kind of event
}

// held are accesses of one kind that came too fast for lines of their own.
type held struct {
	event   audit.Event
	targets map[string]bool
}

// folded is an access with its repetitions that no line has yet.
type folded struct {
	key     string
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
		acknowledged: make(chan struct{}), folded: map[string]*folded{}, more: map[string]int{}, room: maxHeld,
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

// offer does what put does, unless the session has its share of the lines that
// wait to be written.
func (s *Session) offer(event audit.Event) (taken bool) {
	event.Session, event.Project, event.Kind = s.id, s.project, s.kind
	return !errors.Is(s.recorder.Record(s.to, event), audit.ErrShare)
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
	word, detail := "deny", ""
	switch answer {
	case platform.AnswerOnce:
		word = "once"
	case platform.AnswerSession:
		word = "session"
	case platform.AnswerDirectory:
		word, detail = "directory", d.Directory
	}
	s.fold(audit.Event{
		Event: audit.Asked, Access: string(d.Access), Target: d.Target, Process: d.Process, Answer: word,
		Detail: detail, Count: 1,
	})
}

// Alarm notes what happened to a protected path. Any number of files can match a
// pattern, so what comes after maxAlarms is only counted. Refusals do not count
// here, or a session could hide an alarm behind them.
func (s *Session) Alarm(alarm platform.Alarm) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tick(time.Now().UTC())
	if s.alarms == maxAlarms {
		s.waits()
		s.more[audit.Review]++
		return
	}
	s.alarms++
	s.put(audit.Event{Event: audit.Review, Changed: []audit.Change{{Path: alarm.Path, How: string(alarm.Kind)}}})
}

// Missed notes how many events of a kind nobody has kept.
func (s *Session) Missed(kind string, count int) {
	if s == nil || count == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tick(time.Now().UTC())
	s.waits()
	s.more[kind] += count
}

// Ended notes the end of the session, after what it was refused and has changed.
func (s *Session) Ended(code int, signal syscall.Signal, survivors bool, findings []review.Finding) {
	if s == nil {
		return
	}
	s.flush()
	s.review(findings)
	event := audit.Event{Event: audit.Ended, Survivors: survivors}
	if signal != 0 {
		event.Signal = unix.SignalName(signal)
	} else {
		event.ExitCode = &code
	}
	s.put(event)
}

// Left notes what has changed since Ended, by what the session has left. It comes
// after what that was refused.
func (s *Session) Left(findings []review.Finding) {
	if s == nil {
		return
	}
	s.flush()
	s.review(findings)
}

// review notes the files that have changed, if there are any.
func (s *Session) review(findings []review.Finding) {
	if len(findings) == 0 {
		return
	}
	event := audit.Event{Event: audit.Review}
	for _, f := range findings[:min(len(findings), maxListed)] {
		event.Changed = append(event.Changed, audit.Change{
			Path: f.Path, How: string(f.How), Others: max(0, f.Total-1),
		})
	}
	event.More = len(findings) - len(event.Changed)
	s.put(event)
}

// fold writes a line for the first access to a target, and one for the
// repetitions of each minute. The name of a process does not count: a session
// sets it.
func (s *Session) fold(event audit.Event) {
	now := time.Now().UTC()
	for _, text := range []*string{&event.Target, &event.Process, &event.Detail} {
		*text = audit.Shorten(*text, audit.MaxTarget)
	}
	key := strings.Join([]string{event.Event, event.Access, event.Target, event.Detail, event.Answer}, "\x00")
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tick(now)
	f := s.folded[key]
	if f == nil {
		if len(s.order) == maxFolded {
			s.forget(now)
		}
		f = &folded{key: key, event: event}
		f.event.Count = 0
		s.folded[key], s.order = f, append(s.order, f)
	}
	if f.event.Count == 0 {
		f.event.First = &now
	}
	f.event.Count, f.event.Last = f.event.Count+event.Count, &now
	if now.Sub(f.written) >= silence {
		s.write(f.take(now))
	}
}

// tick begins a new minute once the last one is over.
func (s *Session) tick(now time.Time) {
	if now.Sub(s.minute) >= silence {
		s.list()
		s.minute, s.lines, s.bytes, s.alarms = now, 0, 0, 0
	}
}

// forget makes room for another access. Nothing of the oldest is lost.
func (s *Session) forget(now time.Time) {
	oldest := s.order[0]
	s.order = s.order[1:]
	delete(s.folded, oldest.key)
	if oldest.event.Count > 0 {
		s.write(oldest.take(now))
	}
}

// write writes a line, or holds it if the session has had its lines.
func (s *Session) write(line audit.Event) {
	size := maxRest
	for _, text := range []string{s.id, s.project, line.Target, line.Process, line.Detail} {
		size += audit.Size(text)
	}
	if s.lines < maxLines && s.bytes+size <= maxBytes {
		s.lines++
		s.bytes += size
		if s.offer(line) {
			return
		}
	}
	s.hold(line)
}

// waits has what is held written once the minute is over.
func (s *Session) waits() {
	if s.timer == nil {
		s.timer = time.AfterFunc(silence, func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.list()
		})
	}
}

// hold keeps the target of a line for a list.
func (s *Session) hold(line audit.Event) {
	s.waits()
	detail := ""
	if line.Event == audit.Asked { // a user gives few answers, and a session makes any number of refusals
		detail = line.Detail
	}
	var h *held
	for _, known := range s.held {
		if known.event.Event == line.Event && known.event.Access == line.Access &&
			known.event.Answer == line.Answer && known.event.Detail == detail {
			h = known
		}
	}
	if h == nil {
		h = &held{
			event: audit.Event{
				Event: line.Event, Access: line.Access, Answer: line.Answer, Detail: detail, First: line.First,
			},
			targets: map[string]bool{},
		}
		s.held = append(s.held, h)
	}
	target := audit.Shorten(line.Target, maxListedTarget)
	if !h.targets[target] {
		size := sizeInList(target)
		if s.room < size {
			s.more[line.Event] += line.Count
			return
		}
		s.room -= size
		h.targets[target] = true
	}
	h.event.Count += line.Count
	h.event.Last = line.Last
}

// sizeInList is how many bytes a target takes in a list.
func sizeInList(target string) int { return audit.Size(target) + len(`"",`) }

// list writes what is held.
func (s *Session) list() {
	if s.timer != nil {
		s.timer.Stop()
		s.timer = nil
	}
	for _, h := range s.held {
		line := h.event
		size := 0
		for _, target := range slices.Sorted(maps.Keys(h.targets)) {
			if size > 0 && size+sizeInList(target) > maxTargets {
				s.put(line)
				line, size = h.event, 0
				line.Targets, line.Count = nil, 0 // the first line has the count
			}
			line.Targets = append(line.Targets, target)
			size += sizeInList(target)
		}
		s.put(line)
	}
	for _, kind := range slices.Sorted(maps.Keys(s.more)) {
		s.put(audit.Event{Event: kind, More: s.more[kind]})
	}
	s.held, s.room = nil, maxHeld
	clear(s.more)
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
	defer s.mu.Unlock()
	for _, f := range s.order {
		if f.event.Count > 0 {
			s.write(f.take(now))
		}
	}
	s.list()
}
