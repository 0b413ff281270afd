//go:build unix

package audit

import (
	"errors"
	"fmt"
	"os"
	"os/user"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/sandbox-sidecar/sandbox-sidecar/fsguard"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
)

const (
	// maxQueued bounds the lines that wait to be written, and maxLine the bytes
	// of each.
	maxQueued = 2048
	maxLine   = 32 << 10
	// maxShare bounds those of one session.
	maxShare = maxQueued / 4
	// acknowledgeTimeout bounds the wait for a line that must be written.
	acknowledgeTimeout = 5 * time.Second
	// startedDelay is how long a Started line waits, so that its writing takes no
	// processor from the program that starts. The line before it is written.
	startedDelay = 50 * time.Millisecond
)

// ErrLost means that a line that is required could not be written.
var ErrLost = errors.New("the audit trail cannot be written, and audit_required is set")

// ErrShare means that a session has its share of the lines that wait. The line
// was not taken, and counts as neither written nor lost.
var ErrShare = errors.New("the session has many lines that wait to be written")

// ErrJournal means that a line could not be sent to the journal.
var ErrJournal = errors.New("write to the journal of systemd")

// errFull means that there is no room for a line.
var errFull = errors.New("too many lines wait to be written")

// errSilent means that a file system, or the journal, takes no line.
var errSilent = errors.New("no answer")

// Trail writes events. The zero value is ready to use. Its methods may be called
// from several goroutines, and never wait except as they say.
type Trail struct {
	// Via is the sidecar's command; see Event.
	Via string
	// Failed, if not nil, is called with why a line could not be written, once
	// until one is written again. It must not wait.
	Failed func(error)

	// What follows is for tests.
	journal func(Event, []byte) error // nil: the journal of systemd
	maxFile int64                     // 0: the constant

	start sync.Once
	lines chan *line    // an Event is large, and the queue mostly empty
	ended chan struct{} // closed once the writer has ended

	mu     sync.Mutex // guards the fields below
	lost   map[policy.Audit]int
	losses int            // how many lines were lost so far
	why    error          // why the last of them was
	queued map[string]int // by session
	failed bool
	closed bool
	used   bool
}

// line is an event on its way.
type line struct {
	to    policy.Audit
	event Event
	done  chan error // gets the result; nil if nobody waits
	// reached is closed once the lines before are written; nil for an event.
	reached chan struct{}
}

// Record notes an event; see Recorder. It fills in what all events have.
func (t *Trail) Record(to policy.Audit, event Event) error {
	if !to.On() {
		return nil
	}
	event.Version, event.Time = Version, time.Now().UTC()
	event.UID, event.Sidecar, event.Via = os.Getuid(), os.Getpid(), t.Via
	event.Managed = to.Managed
	if to.ProgramOnly {
		event.Argv = nil
	}
	l := &line{to: to, event: event}
	must := to.Required && event.Event == Spawn
	if must {
		l.done = make(chan error, 1)
	}
	switch err := t.put(l); {
	case err == nil:
	case errors.Is(err, ErrShare):
		return err
	default:
		t.fail(to, errFull)
		if must {
			return fmt.Errorf("%w: %w", ErrLost, errFull)
		}
		return nil
	}
	if !must {
		return nil
	}
	timer := time.NewTimer(acknowledgeTimeout)
	defer timer.Stop()
	err := errSilent
	select {
	case err = <-l.done:
	case <-timer.C:
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrLost, err)
	}
	return nil
}

// put queues a line. It returns an error if there is no room.
func (t *Trail) put(l *line) error {
	t.start.Do(func() {
		t.lines, t.ended = make(chan *line, maxQueued), make(chan struct{})
		t.mu.Lock()
		t.used = true
		t.mu.Unlock()
		go t.write()
	})
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return errFull
	}
	if l.event.Held() && t.queued[l.event.Session] >= maxShare {
		return ErrShare
	}
	select {
	case t.lines <- l:
		if t.queued == nil {
			t.queued = map[string]int{}
		}
		t.queued[l.event.Session]++
		return nil
	default:
		return errFull
	}
}

// taken counts a line that waits no more.
func (t *Trail) taken(l *line) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.queued[l.event.Session]--; t.queued[l.event.Session] == 0 {
		delete(t.queued, l.event.Session)
	}
}

// fail counts a line that was lost.
func (t *Trail) fail(to policy.Audit, err error) {
	t.mu.Lock()
	if t.lost == nil {
		t.lost = map[policy.Audit]int{}
	}
	t.lost[to]++
	t.losses++
	t.why = err
	first := !t.failed
	t.failed = true
	t.mu.Unlock()
	if first && t.Failed != nil {
		t.Failed(err)
	}
}

// Losses is how many lines could not be written so far, and why the last of them
// could not.
func (t *Trail) Losses() (lines int, why error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.losses, t.why
}

// Flush waits until the lines so far are written, or are lost, but not longer than a
// time. It does not wait if the queue is full.
func (t *Trail) Flush(atMost time.Duration) {
	mark := &line{reached: make(chan struct{})}
	t.mu.Lock()
	waits := t.used && !t.closed
	if waits {
		select {
		case t.lines <- mark:
		default:
			waits = false
		}
	}
	t.mu.Unlock()
	if !waits {
		return
	}
	timer := time.NewTimer(atMost)
	defer timer.Stop()
	select {
	case <-mark.reached:
	case <-timer.C:
	}
}

// takeLost returns how many lines were lost, and counts from zero again.
func (t *Trail) takeLost(to policy.Audit) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	lost := t.lost[to]
	delete(t.lost, to)
	return lost
}

// Close waits until all lines are written, but not longer than a time. Lines
// that come later are lost.
func (t *Trail) Close(atMost time.Duration) {
	t.mu.Lock()
	used := t.used && !t.closed
	t.closed = true
	if used {
		close(t.lines)
	}
	t.mu.Unlock()
	if !used {
		return
	}
	select {
	case <-t.ended:
	case <-time.After(atMost):
	}
}

// write writes the lines of the queue. A local disk may hold it up.
func (t *Trail) write() {
	defer close(t.ended)
	open := map[string]*directory{}
	defer func() {
		for _, d := range open {
			d.close()
		}
	}()
	name := userName()
	write := func(l *line) {
		defer t.taken(l)
		l.event.User = name
		l.event.Lost = t.takeLost(l.to)
		err := t.writeLine(l, open)
		if err != nil {
			t.restore(l)
			t.fail(l.to, err)
		} else {
			t.mu.Lock()
			t.failed = false
			t.mu.Unlock()
		}
		if l.done != nil {
			l.done <- err
		}
	}
	for l := range t.lines {
		if l.event.Event == Started {
			l = t.hold(l, write)
		}
		switch {
		case l == nil:
		case l.reached != nil:
			close(l.reached)
		default:
			write(l)
		}
	}
}

// hold writes a line once startedDelay is over, or as soon as another line comes
// that is no Started one: that is returned, and nil otherwise.
func (t *Trail) hold(l *line, write func(*line)) (next *line) {
	held := []*line{l}
	timer := time.NewTimer(startedDelay)
	defer timer.Stop()
	for waiting := true; waiting; {
		select {
		case next = <-t.lines:
			if waiting = next != nil && next.event.Event == Started; waiting {
				held = append(held, next)
				next = nil
			}
		case <-timer.C:
			waiting = false
		}
	}
	for _, l := range held {
		write(l)
	}
	return next
}

// restore counts lines again that the line that was not written would have told
// of.
func (t *Trail) restore(l *line) {
	if l.event.Lost == 0 {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.lost == nil {
		t.lost = map[policy.Audit]int{}
	}
	t.lost[l.to] += l.event.Lost
}

// writeLine writes a line everywhere that the policy says. If one place fails,
// so does the line, which may be in the other.
func (t *Trail) writeLine(l *line, open map[string]*directory) error {
	text, err := encode(l.event)
	if err != nil {
		return err
	}
	var problems []error
	if l.to.Dir != "" {
		problems = append(problems, t.writeFile(l.to.Dir, append(text, '\n'), open))
	}
	if l.to.Journal {
		send := t.journal
		if send == nil {
			send = sendToJournal
		}
		problems = append(problems, send(l.event, text))
	}
	return errors.Join(problems...)
}

func (t *Trail) writeFile(dir string, text []byte, open map[string]*directory) error {
	d := open[dir]
	if d == nil {
		if fsguard.Kind(dir) != "" {
			_, err := appendLine(dir, text)
			return err
		}
		var err error
		if d, err = openDirectory(dir); err != nil {
			return err
		}
		if t.maxFile > 0 {
			d.maxFile = t.maxFile
		}
		open[dir] = d
	}
	err := d.write(text)
	if err != nil { // it may have been replaced: look again the next time
		d.close()
		delete(open, dir)
	}
	return err
}

// userName is the user's name; the number if it is not known.
func userName() string {
	id := strconv.Itoa(os.Getuid())
	if found, err := user.LookupId(id); err == nil {
		return strings.ToValidUTF8(found.Username, "?")
	}
	return id
}
