package audit

import (
	"errors"
	"fmt"
	"sync"
	"time"

	landlock "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/linux/notify"
)

// canaryTimeout is how long the record of a mark is waited for. It takes well
// below a millisecond where nobody else has much to log.
const canaryTimeout = time.Second

// canary are refusals of our own. The log keeps the order, so that with a mark's
// record all that was refused before has come; and that it comes at all proves
// that the log is read. They are made by a thread that may not list
// directories, and does nothing else.
type canary struct {
	making   sync.Mutex    // held by who makes one
	provoke  chan struct{} // closed at the end
	provoked chan error

	mu     sync.Mutex // guards the fields below
	domain uint64     // the thread's; 0 as long as it is not known
	seen   chan struct{}
}

// start starts the thread.
func (m *canary) start() error {
	m.provoke, m.provoked = make(chan struct{}), make(chan error)
	go notify.OnThread(func() {
		err := denyListing()
		m.provoked <- err
		if err != nil {
			return
		}
		for range m.provoke {
			m.provoked <- list()
		}
	})
	return <-m.provoked
}

func (m *canary) stop() { close(m.provoke) }

// denyListing confines the calling thread, with what Landlock does by
// default: it logs what it refuses to who has confined himself.
func denyListing() error {
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("set no_new_privs: %w", err)
	}
	ruleset, err := landlock.LandlockCreateRuleset(&landlock.RulesetAttr{HandledAccessFS: landlock.AccessFSReadDir}, 0)
	if err != nil {
		return fmt.Errorf("create landlock ruleset: %w", err)
	}
	defer unix.Close(ruleset)
	if err := landlock.LandlockRestrictSelf(ruleset, 0); err != nil {
		return fmt.Errorf("enforce landlock ruleset: %w", err)
	}
	return nil
}

func list() error {
	fd, err := unix.Open("/", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if errors.Is(err, unix.EACCES) {
		return nil
	}
	if err == nil {
		unix.Close(fd)
	}
	return fmt.Errorf("list / where Landlock forbids it: expected a denial: %w", errors.Join(err, unix.ENOTSUP))
}

// awaitCanary makes a mark, and waits for its record. One that comes too late is taken
// for the next, which then waits too short.
func (l *Log) awaitCanary() error {
	m := &l.canary
	m.making.Lock()
	defer m.making.Unlock()
	seen := make(chan struct{})
	m.mu.Lock()
	m.seen = seen
	m.mu.Unlock()
	m.provoke <- struct{}{}
	if err := <-m.provoked; err != nil {
		return err
	}
	late := time.NewTimer(canaryTimeout)
	defer late.Stop()
	select {
	case <-seen:
		return nil
	case <-late.C:
		return errors.New("what Landlock refuses does not come by the audit log: wait for a denial of our own: too late")
	}
}

// setDomain notes which domain the thread is in: its first mark is followed by
// that.
func (m *canary) setDomain(domain uint64) {
	m.mu.Lock()
	m.domain = domain
	m.mu.Unlock()
	m.seenFrom(domain)
}

// seenFrom reports whether a domain is the thread's, and then lets who waits
// for that go on.
func (m *canary) seenFrom(domain uint64) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.domain == 0 || domain != m.domain {
		return false
	}
	if m.seen != nil {
		close(m.seen)
		m.seen = nil
	}
	return true
}
