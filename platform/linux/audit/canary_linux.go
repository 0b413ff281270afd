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

// canaryTimeout is how long to wait for the canary's record. It takes much less
// than a millisecond if little else is logged.
const canaryTimeout = time.Second

// canary makes denials of this process's own. The log keeps the order, so once
// the canary's record has arrived, so have all earlier denials. That it arrives
// at all proves that the log is read. A dedicated thread makes them; it may not
// list directories and does nothing else.
type canary struct {
	making   sync.Mutex    // held while one is awaited
	provoke  chan struct{} // closed at the end
	provoked chan error

	mu     sync.Mutex // guards the fields below
	domain uint64     // the thread's; 0 until it is known
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

// denyListing confines the calling thread with Landlock's default flags, which
// log denials of the process that has confined itself.
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
	return fmt.Errorf("list / against Landlock's rules: expected a denial: %w", errors.Join(err, unix.ENOTSUP))
}

// awaitCanary makes a denial and waits for its record. A record that arrives
// too late counts for the next canary, which then waits too short.
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
		return errors.New("Landlock's denials do not arrive in the audit log: waited in vain for a test denial")
	}
}

// setDomain records the thread's domain, which the log names after its first
// denial.
func (m *canary) setDomain(domain uint64) {
	m.mu.Lock()
	m.domain = domain
	m.mu.Unlock()
	m.seenFrom(domain)
}

// seenFrom reports whether a domain is the thread's. If so, it wakes
// awaitCanary.
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
