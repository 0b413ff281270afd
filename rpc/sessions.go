package rpc

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
	"github.com/sandbox-sidecar/sandbox-sidecar/spawn"
)

// maxEnded bounds the ended sessions that are kept for an editor that has not
// closed them.
const maxEnded = 1000

// sessions is the table of everything that was spawned and not closed.
type sessions struct {
	mu      sync.Mutex // guards the fields below
	entries map[string]*entry
	leaving map[*entry]bool // taken, and not ended yet: they may have been given a grace
	ended   []string        // ids in the order of their ends
	closing bool            // nothing may be added any more
}

func newSessions() *sessions {
	return &sessions{entries: map[string]*entry{}, leaving: map[*entry]bool{}}
}

// entry is one session, from the moment its spawn request was taken.
type entry struct {
	id, cwd, projectDir string
	kind                protocol.Kind
	policyID            string // set before started is closed
	cancel              context.CancelFunc
	started             chan struct{} // closed when the start has succeeded or failed
	answered            chan struct{} // closed when the answer to the spawn request was sent

	mu      sync.Mutex // guards the fields below
	session *spawn.Session
	backlog []func(*spawn.Session) // what came before the session had started, in order
	waiting int                    // bytes of input in backlog
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

// take removes an entry, so that only one caller gets to close it. It must call
// left then.
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

// removeFailed forgets an entry whose start failed, unless the id is another's
// by now.
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

// markEnded notes the end of a session and forgets the oldest ended ones when
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

// closeAll ends every session, also those that are still starting or are being
// closed, and refuses new ones. graceOf says how long each may take; of several
// callers the least patient counts.
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

// current is the session once it has started, else nil.
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

// do applies an operation to the session, or keeps it in order until the
// session has started. The operation must not block.
func (e *entry) do(bytes int, operation func(*spawn.Session)) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.session != nil {
		operation(e.session)
		return true
	}
	if e.waiting += bytes; e.waiting > maxBacklog || len(e.backlog) >= maxBacklogLength {
		return false
	}
	e.backlog = append(e.backlog, operation)
	return true
}

const (
	// maxBacklog bounds the input that waits for a session to start, in bytes.
	maxBacklog = 1 << 20
	// maxBacklogLength bounds the operations that wait for a session to start.
	maxBacklogLength = 10_000
)

// begin hands the started session over to what waited for it.
func (e *entry) begin(session *spawn.Session) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.session = session
	for _, operation := range e.backlog {
		operation(session)
	}
	e.backlog = nil
}

// close ends the session. A start in progress is given up first. It returns nil
// for a session that never came to be. Where processes have survived, it
// returns both.
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
	end.findings = session.Findings()
	return end, err
}

// closed says how a session was closed.
type closed struct {
	spawn.Closed
	exit     *spawn.Exit // nil where the leader itself has survived
	elapsed  time.Duration
	findings []spawn.Finding
}
