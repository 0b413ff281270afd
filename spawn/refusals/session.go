package refusals

import (
	"log/slog"
	"sync"
	"time"

	"github.com/sandbox-sidecar/sandbox-sidecar/lifecycle/proc"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform"
)

const (
	// pause is how long refusals are gathered before they are written.
	pause = time.Second
	// soon is that for the first ones after a pause, if somebody waits for them.
	soon = 10 * time.Millisecond
)

// Book is where refusals are kept. A nil one keeps nothing.
type Book struct {
	// Dir is the directory of the files; it is made if it is needed.
	Dir string
	// Under is what all its sessions run under, beside the settings.
	Under Under
	// Log gets what could not be kept.
	Log *slog.Logger
}

// Session keeps what one session is refused. A nil one keeps nothing. Its methods
// may be called from several goroutines; only Flush waits for the file.
type Session struct {
	book    *Book
	project string
	kind    string
	written func() // called after each write; nil if nobody waits for it

	writing sync.Mutex // held while a file is written

	mu      sync.Mutex // guards what follows
	leader  Leader
	pending []*Refusal // not yet written, at most maxKept
	numbers map[key]int
	timer   *time.Timer // writes what is pending; nil if nothing is
	last    time.Time   // of the last write
}

// Begin begins to keep what a session is refused that program leads. kind is
// "terminal" or "tool".
func (b *Book) Begin(project, kind, program string) *Session {
	if b == nil || b.Dir == "" || project == "" {
		return nil
	}
	return &Session{
		book: b, project: project, kind: kind, leader: Leader{Program: program}, numbers: map[key]int{},
	}
}

// Soon has refusals written sooner, if the last ones were written a while ago, and
// written called after each write. It must be called before Add. Flush waits until
// written returns, so written must not call it.
func (s *Session) Soon(written func()) {
	if s != nil {
		s.written = written
	}
}

// Started says which process leads the session.
func (s *Session) Started(pid int) {
	if s == nil {
		return
	}
	started, err := proc.StartTime(pid)
	if err != nil {
		return // it has ended already
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.leader.PID, s.leader.Started = pid, started
}

// Add keeps a refusal, which is written soon. lacking is as in Refusal. What
// comes too fast pushes out what came first.
func (s *Session) Add(d platform.Denial, lacking string) {
	if s == nil {
		return
	}
	d.PID = 0
	fresh := &Refusal{Denial: d, Kind: s.kind, Under: s.book.Under, Lacking: lacking, Last: time.Now().UTC()}
	if !fresh.fits() {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, known := range s.pending {
		if known.same(fresh) {
			known.Count += d.Count
			known.Last, known.Process = fresh.Last, d.Process
			return
		}
	}
	if len(s.pending) == maxKept {
		s.pending = s.pending[1:]
	}
	s.pending = append(s.pending, fresh)
	if s.timer == nil {
		wait := pause
		if s.written != nil && time.Since(s.last) > pause {
			wait = soon
		}
		s.timer = time.AfterFunc(wait, s.Flush)
	}
}

// Flush writes what was not written yet.
func (s *Session) Flush() {
	if s == nil {
		return
	}
	s.writing.Lock()
	defer s.writing.Unlock()
	s.mu.Lock()
	list := s.pending
	s.pending = nil
	if s.timer != nil {
		s.timer.Stop()
		s.timer = nil
	}
	for _, r := range list {
		r.Leader = s.leader
	}
	s.last = time.Now()
	s.mu.Unlock()
	if len(list) == 0 {
		return
	}
	if err := write(s.book.Dir, s.project, list); err != nil {
		s.book.Log.Info(`refusals are not kept for "sandbox-sidecar allow"`, "error", err)
		return
	}
	s.remember(list)
	if s.written != nil {
		s.written()
	}
}

// remember keeps the numbers of what was written.
func (s *Session) remember(list []*Refusal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.numbers) > maxKept {
		clear(s.numbers)
	}
	for _, r := range list {
		s.numbers[keyOf(r.Denial)] = r.Number
	}
}

// Number is the number of a refusal that was written; 0 if it has none.
func (s *Session) Number(d platform.Denial) int {
	if s == nil {
		return 0
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.numbers[keyOf(d)]
}

// Running reports whether the session's leader still runs.
func (l Leader) Running() bool {
	if l.PID == 0 {
		return false
	}
	started, err := proc.StartTime(l.PID)
	return err == nil && started == l.Started
}
