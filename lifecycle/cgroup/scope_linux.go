package cgroup

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"time"

	systemd "github.com/coreos/go-systemd/v22/dbus"
	"github.com/godbus/dbus/v5"

	"github.com/sandbox-sidecar/sandbox-sidecar/lifecycle/journal"
)

// scopeTimeout bounds the whole attempt to get a scope, over all sockets,
// because an editor waits. An answer takes milliseconds.
const scopeTimeout = 2 * time.Second

// scoper makes the subtree, if need be in a scope of the user's systemd. In a
// login session (ssh, console, su) our cgroup belongs to root, and nothing can
// be made in it. A scope's cgroup belongs to the user. The functions are fields
// so that tests can replace systemd.
type scoper struct {
	env  []string
	tree func() (*Tree, error)
	// start moves this process into a new scope, and returns when systemd
	// reports that it has finished.
	start func(ctx context.Context, bus userBus, unit string) error
	own   func() (string, error)
}

// Open makes this process's subtree. The environment leads to the user's
// systemd; nil means that systemd is not asked. Each directory is noted before
// it is made.
func Open(env []string, note func(journal.Record) error) (*Tree, error) {
	return newScoper(env, note).open()
}

func newScoper(env []string, note func(journal.Record) error) *scoper {
	tree := func() (*Tree, error) { return openCgroupTree(note) }
	return &scoper{env: env, tree: tree, start: startScope, own: ownCgroup}
}

// open makes the subtree in our cgroup, or moves this process once into a scope
// and makes it there. The error holds every reason.
func (s *scoper) open() (*Tree, error) {
	tree, refused := s.tree()
	// Containers have a read-only mount or none. A scope outside could not be
	// seen from here either.
	if !errors.Is(refused, fs.ErrPermission) || s.env == nil {
		return tree, refused
	}
	ctx, cancel := context.WithTimeout(context.Background(), scopeTimeout)
	defer cancel()
	unit, err := scopeName()
	if err != nil {
		return nil, &ScopeError{refused, []error{err}}
	}
	if failures := s.move(ctx, unit); failures != nil {
		return nil, &ScopeError{refused, failures}
	}
	tree, err = s.tree()
	if err != nil {
		return nil, &ScopeError{refused, []error{fmt.Errorf("in %s: %w", unit, err)}}
	}
	tree.scoped = true
	return tree, nil
}

// move tries one socket after another. It returns nil once this process is in
// the scope, otherwise the error of every socket.
func (s *scoper) move(ctx context.Context, unit string) []error {
	var failures []error
	for _, bus := range userBuses(s.env) {
		err := s.start(ctx, bus, unit)
		// Only our own cgroup proves the move. A proxy may have withheld the
		// signal that the job is done, or systemd may have moved the proxy.
		own, ownErr := s.own()
		switch {
		case ownErr != nil:
			failures = append(failures, fmt.Errorf("check for this process in %s: %w", unit, ownErr))
		case filepath.Base(own) == unit:
			return nil
		case err != nil:
			failures = append(failures, err)
		default:
			failures = append(failures,
				fmt.Errorf("start %s over %s: systemd reports success, but this process is in %s",
					unit, bus.socket, own))
		}
	}
	return failures
}

// ScopeError is why no cgroup can be made, neither here nor in a scope.
type ScopeError struct {
	Refused  error
	Failures []error
}

// Error is one line, because it appears in replies and in doctor's output.
func (e *ScopeError) Error() string {
	var text strings.Builder
	fmt.Fprintf(&text, "%v; no scope of the user's systemd either", e.Refused)
	for i, failure := range e.Failures {
		separator := "; "
		if i == 0 {
			separator = ": "
		}
		text.WriteString(separator + failure.Error())
	}
	return text.String()
}

// Unwrap returns the refusal and what failed after it.
func (e *ScopeError) Unwrap() []error { return append([]error{e.Refused}, e.Failures...) }

// scopeName is used once while the machine runs, like the subtree's name. So
// the mode "fail" never meets a unit of that name.
func scopeName() (string, error) {
	name, err := ownName()
	return name + ".scope", err
}

// startScope asks the systemd behind a socket for a scope with this process in
// it.
func startScope(ctx context.Context, bus userBus, unit string) error {
	conn, err := systemd.NewConnection(func() (*dbus.Conn, error) { return bus.dial(ctx) })
	if err != nil {
		return err
	}
	defer conn.Close()
	result := make(chan string, 1) // otherwise the library would block on it
	_, err = conn.StartTransientUnitContext(ctx, unit, "fail", []systemd.Property{
		systemd.PropDescription("Terminal sessions of sandbox-sidecar"),
		// 0 is the sender, as the kernel knows it. In a pid namespace our own
		// number could be somebody else's.
		systemd.PropPids(0),
		{Name: "Delegate", Value: dbus.MakeVariant(true)},
		// Otherwise a scope whose last process was killed would remain as
		// failed.
		{Name: "CollectMode", Value: dbus.MakeVariant("inactive-or-failed")},
	}, result)
	if err != nil {
		return bus.failure(ctx, err)
	}
	select {
	case got := <-result:
		if got != "done" {
			return fmt.Errorf("start %s over %s: systemd reports %q", unit, bus.socket, got)
		}
		return nil
	case <-ctx.Done():
		return bus.failure(ctx, ctx.Err())
	}
}
