package cgroup

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"
)

// stage is a simulated machine: the cgroup of this process, what systemd does
// on each socket, and what the kernel answers to a new cgroup before and after
// the move.
type stage struct {
	cgroup string
	before error
	after  error
	starts []func(ctx context.Context, unit string) error // one for each socket
	asked  []string
}

func (s *stage) scoper(env []string) *scoper {
	home := s.cgroup
	return &scoper{
		env: env,
		own: func() (string, error) { return s.cgroup, nil },
		tree: func() (*Tree, error) {
			err := s.before
			if s.cgroup != home {
				err = s.after
			}
			if err != nil {
				return nil, fmt.Errorf("make cgroup: %w", err)
			}
			return &Tree{dir: s.cgroup}, nil
		},
		start: func(ctx context.Context, bus userBus, unit string) error {
			s.asked = append(s.asked, bus.socket)
			return s.starts[len(s.asked)-1](ctx, unit)
		},
	}
}

func (s *stage) move(_ context.Context, unit string) error {
	s.cgroup = "/cg/app.slice/" + unit
	return nil
}

func (s *stage) idle(context.Context, string) error { return nil }

var errBus = errors.New("the bus is out of order")

func broken(context.Context, string) error { return errBus }

func TestScoper(t *testing.T) {
	t.Parallel()
	env := []string{"XDG_RUNTIME_DIR=/r"}
	for _, test := range []struct {
		name   string
		env    []string
		stage  func(*stage)
		asked  int
		scoped bool
		is     []error  // the errors that it wraps; none: a tree is made
		says   []string // the texts in the error
	}{
		{"own cgroup will do", env, func(*stage) {}, 0, false, nil, nil},
		{"read-only is final", env, func(s *stage) { s.before = unix.EROFS }, 0, false, []error{unix.EROFS}, nil},
		{"no hierarchy is final", env, func(s *stage) { s.before = errNoCgroup }, 0, false, []error{errNoCgroup}, nil},
		{"not to be asked", nil, func(s *stage) { s.before = unix.EACCES }, 0, false, []error{unix.EACCES}, nil},
		{"moved at once", env, func(s *stage) {
			s.before, s.starts = unix.EACCES, []func(context.Context, string) error{s.move}
		}, 1, true, nil, nil},
		{"EPERM is as good", env, func(s *stage) {
			s.before, s.starts = unix.EPERM, []func(context.Context, string) error{s.move}
		}, 1, true, nil, nil},
		{"the second socket answers", env, func(s *stage) {
			s.before, s.starts = unix.EACCES, []func(context.Context, string) error{broken, s.move}
		}, 2, true, nil, nil},
		{"moved, though the answer was lost", env, func(s *stage) {
			s.before, s.starts = unix.EACCES, []func(context.Context,
				string) error{func(ctx context.Context, unit string) error {
				return errors.Join(s.move(ctx, unit), errBus)
			}}
		}, 1, true, nil, nil},
		{"somebody else was moved", env, func(s *stage) {
			s.before, s.starts = unix.EACCES, []func(context.Context, string) error{s.idle, s.idle}
		}, 2, false, []error{unix.EACCES}, []string{"systemd reports success", "/cg/session-1.scope"}},
		{
			"no answer", env, func(s *stage) {
				s.before, s.starts = unix.EACCES, []func(context.Context, string) error{broken, broken}
			}, 2, false,
			[]error{unix.EACCES, errBus},
			[]string{"make cgroup: permission denied", "no scope of the user's systemd either", errBus.Error()},
		},
		{"the scope is of no use", env, func(s *stage) {
			s.before, s.after, s.starts = unix.EACCES, unix.ENOSPC, []func(context.Context, string) error{s.move}
		}, 1, false, []error{unix.EACCES, unix.ENOSPC}, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s := &stage{cgroup: "/cg/session-1.scope"}
			test.stage(s)
			tree, err := s.scoper(test.env).open()
			if len(s.asked) != test.asked {
				t.Errorf("asked %q, expected %d", s.asked, test.asked)
			}
			for _, is := range test.is {
				if !errors.Is(err, is) {
					t.Errorf("error %v is not %v", err, is)
				}
			}
			for _, says := range test.says {
				if !strings.Contains(fmt.Sprint(err), says) {
					t.Errorf("error %q does not say %q", err, says)
				}
			}
			if strings.Contains(fmt.Sprint(err), "\n") {
				t.Errorf("error %q is more than a line", err)
			}
			if test.is != nil {
				if tree != nil {
					t.Errorf("there is a tree beside the error %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got := tree.Detail(); tree.scoped != test.scoped ||
				strings.Contains(got, "transient scope") != test.scoped {
				t.Errorf("detail %q, expected in a scope: %v", got, test.scoped)
			}
		})
	}
}

// However many sockets hang, the sidecar starts within the time that is set for
// all of them.
func TestScoper_HangingSystemd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		hang := func(ctx context.Context, _ string) error { <-ctx.Done(); return ctx.Err() }
		s := &stage{
			cgroup: "/cg/session-1.scope", before: unix.EACCES,
			starts: []func(context.Context, string) error{hang, hang},
		}
		start := time.Now()
		_, err := s.scoper([]string{}).open()
		if elapsed := time.Since(start); elapsed != scopeTimeout {
			t.Errorf("open took %v, expected %v", elapsed, scopeTimeout)
		}
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v, expected a deadline exceeded", err)
		}
	})
}

func TestScopeName(t *testing.T) {
	t.Parallel()
	first, err := scopeName()
	if err != nil {
		t.Fatal(err)
	}
	again, _ := scopeName()
	if first != again || !strings.HasPrefix(first, treePrefix) || !strings.HasSuffix(first, ".scope") ||
		slices.Contains([]byte(first), '/') {
		t.Errorf("scopeName() = %q, then %q", first, again)
	}
}
