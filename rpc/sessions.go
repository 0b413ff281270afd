package rpc

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
	"github.com/sandbox-sidecar/sandbox-sidecar/spawn"
)

// maxEnded bounds the ended sessions that the editor has not closed.
const maxEnded = 1000

// sessions is the table of all sessions that were spawned and not closed.
type sessions struct {
	mu      sync.Mutex // guards the fields below
	entries map[string]*entry
	leaving map[*entry]bool // taken, and not yet ended: they may have a grace period
	ended   []string        // ids in the order of their ends
	closing bool            // no more entries may be added
}

func newSessions() *sessions {
	return &sessions{entries: map[string]*entry{}, leaving: map[*entry]bool{}}
}

// entry is one session, from the moment its spawn request was admitted.
type entry struct {
	id, cwd, projectDir string
	group               string // its name; "" for a sandbox of its own
	kind                protocol.Kind
	argv                []string               // of a command; nil for a shell
	hasToolchain        func(name string) bool // see presentation.Failed
	passVariable        func(name string) string
	policyID            string // set before started is closed
	cancel              context.CancelFunc
	room                room          // of its output
	started             chan struct{} // closed when the start has succeeded or failed
	answered            chan struct{} // closed when the answer to the spawn request was sent

	mu      sync.Mutex // guards the fields below
	session *spawn.Session
	backlog []func(*spawn.Session) error // operations that wait for the start, in order
	waiting int                          // bytes of input in backlog
	gap     bool                         // an operation was dropped before the start
	// reviewed: the review is known. owed: it was not when the session was closed,
	// so the answer lacks it.
	reviewed, owed bool
}

var (
	errTaken    = errors.New("taken")
	errEnding   = errors.New("the sidecar is shutting down")
	errNotFound = errors.New("not found")
)

// add reserves an id.
func (t *sessions) add(e *entry) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closing {
		return errEnding
	}
	if _, taken := t.entries[e.id]; taken {
		return errTaken
	}
	t.entries[e.id] = e
	return nil
}

// take removes an entry, so that only one caller closes it. The caller must
// call forget then.
func (t *sessions) take(id string) (*entry, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	e, ok := t.entries[id]
	if !ok {
		return nil, errNotFound
	}
	delete(t.entries, id)
	t.leaving[e] = true
	return e, nil
}

// forget removes entries that were closed.
func (t *sessions) forget(closed ...*entry) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, e := range closed {
		delete(t.leaving, e)
	}
}

// removeFailed removes an entry whose start failed, unless another session has
// its id by now.
func (t *sessions) removeFailed(e *entry) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.entries[e.id] == e {
		delete(t.entries, e.id)
	}
}

func (t *sessions) find(id string) (*entry, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	e, ok := t.entries[id]
	return e, ok
}

// has reports whether nobody has closed an entry.
func (t *sessions) has(e *entry) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.entries[e.id] == e
}

// all returns every entry whose session has started.
func (t *sessions) all() []*entry {
	t.mu.Lock()
	defer t.mu.Unlock()
	var all []*entry
	for _, e := range t.entries {
		if e.current() != nil {
			all = append(all, e)
		}
	}
	return all
}

// markEnded records the end of a session. It removes the oldest ended one if
// there are too many.
func (t *sessions) markEnded(id string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, open := t.entries[id]; !open {
		return
	}
	t.ended = append(t.ended, id)
	if len(t.ended) > maxEnded {
		delete(t.entries, t.ended[0])
		t.ended = t.ended[1:]
	}
}

// closeAll ends every session, including those that are starting or closing,
// and refuses new ones. graceOf returns the grace period of each. If there are
// several callers, the shortest one counts.
func (t *sessions) closeAll(ctx context.Context, graceOf func(*entry) time.Duration) error {
	t.mu.Lock()
	t.closing = true
	var all []*entry
	for _, e := range t.entries {
		t.leaving[e] = true
	}
	clear(t.entries)
	for e := range t.leaving {
		all = append(all, e)
	}
	t.mu.Unlock()
	defer t.forget(all...)
	failures := make([]error, len(all))
	var closing sync.WaitGroup
	for i, e := range all {
		closing.Go(func() { _, failures[i] = e.close(ctx, graceOf(e)) })
	}
	closing.Wait()
	return errors.Join(failures...)
}

// current is the session; nil if it has not started.
func (e *entry) current() *spawn.Session {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.session
}

// running reports whether the session has started and its leader has not ended.
func (e *entry) running() bool {
	session := e.current()
	if session == nil {
		return false
	}
	select {
	case <-session.LeaderEnded():
		return false
	default:
		return true
	}
}

// errBacklog means that too much waits for a session to start.
var errBacklog = errors.New("too much waits for the session to start")

// do applies an operation to the session, and returns its error. If the session
// has not started, the operation is queued, and another goroutine applies it: its
// error is lost. The operation must not block. The error is errBacklog if the queue
// is full.
func (e *entry) do(bytes int, operation func(*spawn.Session) error) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.session != nil {
		return operation(e.session)
	}
	if e.waiting += bytes; e.gap || e.waiting > maxBacklog || len(e.backlog) >= maxBacklogLength {
		e.gap = true
		return errBacklog
	}
	e.backlog = append(e.backlog, operation)
	return nil
}

const (
	// maxBacklog bounds the bytes of input that wait for a session to start.
	maxBacklog = 1 << 20
	// maxBacklogLength bounds the operations that wait for a session to start.
	maxBacklogLength = 10_000
)

// begin applies the queued operations to the session that has started.
func (e *entry) begin(session *spawn.Session) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.session = session
	for _, operation := range e.backlog {
		_ = operation(session)
	}
	e.backlog = nil
	if e.gap {
		session.CloseInput() // what comes now would follow a gap
	}
}

// close ends the session, after cancelling a start in progress. It returns nil
// for a session that was never started. If processes survive, it returns both
// values.
func (e *entry) close(ctx context.Context, grace time.Duration) (*closed, error) {
	e.cancel()
	<-e.started
	session := e.current()
	if session == nil {
		return nil, nil
	}
	begun := time.Now()
	done, err := session.Close(ctx, grace)
	end := &closed{Closed: done, elapsed: time.Since(begun)}
	select {
	case <-session.LeaderEnded():
		exit := session.Exit()
		end.exit = &exit
	default:
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.owed = !e.reviewed; e.reviewed {
		end.findings = session.Findings()
	}
	return end, err
}

// closed says how closing a session went.
type closed struct {
	spawn.Closed
	exit     *spawn.Exit // nil if the leader itself has survived
	elapsed  time.Duration
	findings []spawn.Finding
}
