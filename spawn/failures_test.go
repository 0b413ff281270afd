//go:build unix

package spawn

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/platformtest"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/deadline"
)

// failure is a way in which a start fails.
type failure struct {
	name        string
	backend     *platformtest.Fake
	change      func(*Request)
	unavailable bool
	says        string
	hint        bool
}

// restrictedForTests is a policy of sessions with a directory of their own.
var restrictedForTests = policy.Policy{
	Restricted: true, PrivateRuntimeDir: true, Network: policy.Network{Allowed: true},
	OnUnavailable: policy.Refuse,
}

func failures() []failure {
	return []failure{
		{"a program that does not exist", &platformtest.Fake{}, func(r *Request) {
			r.Program = "/no/such"
		}, false, `execute: "/no/such": no such file or directory`, true},
		{"a name that is not in PATH", &platformtest.Fake{}, func(r *Request) {
			r.Program = "no-such-program"
		}, false, `execute: "no-such-program": `, true},
		{
			"a directory for a program", &platformtest.Fake{}, func(r *Request) { r.Program = "/" }, false,
			`execute: "/": permission denied`, true,
		},
		{
			"a missing directory", &platformtest.Fake{}, func(r *Request) { r.Dir += "/no" }, false,
			"no such file or directory", false,
		},
		{"a machine without a sandbox", &platformtest.Fake{Unavailable: platform.ErrUnavailable}, func(r *Request) {
			r.Policy = restrictedForTests
		}, true, "confine session: ", true},
		{"a stage that fails", &platformtest.Fake{Failure: "no luck"}, func(r *Request) {
			r.Policy = restrictedForTests
		}, true, "no luck", true},
	}
}

// fail starts a session in a way that fails, and returns the error.
func (s *fixture) fail(t *testing.T, way failure) *Error {
	t.Helper()
	request := s.line("touch ran")
	way.change(&request)
	session, err := s.Start(t.Context(), request)
	var failed *Error
	if session != nil || !errors.As(err, &failed) || !strings.Contains(err.Error(), way.says) {
		t.Fatalf("got %v", err)
	}
	if errors.Is(err, ErrUnavailable) != way.unavailable || (failed.Hint != "") != way.hint {
		t.Errorf("got %#v", failed)
	}
	return failed
}

// mustLeaveNothing waits until the directories of sessions are gone, which are
// removed in the background if that takes long.
func (s *fixture) mustLeaveNothing(t *testing.T) {
	t.Helper()
	var left []string
	if !deadline.Until(timeout, func() bool {
		left, _ = filepath.Glob(filepath.Join(s.dir, ".local/state/sandbox-sidecar/run/s*"))
		return len(left) == 0
	}) {
		t.Errorf("left behind: %s", left)
	}
	if _, err := os.Stat(filepath.Join(s.dir, "ran")); err == nil {
		t.Error("it ran")
	}
}

func TestStart_Failures(t *testing.T) {
	t.Parallel()
	for _, way := range failures() {
		t.Run(way.name, func(t *testing.T) {
			t.Parallel()
			s := newFixture(t, way.backend)
			failed := s.fail(t, way)
			s.mustLeaveNothing(t)
			// The name is free again.
			request := s.line("exit 9")
			request.ID = failed.Attempt
			if _, r := s.begin(t, request); r != nil {
				if exit, _ := r.end(t); exit.Code != 9 {
					t.Errorf("the next one ended with %+v", exit)
				}
			}
		})
	}
}

// seeing calls a function before it confines a session, whose directories are there.
type seeing struct {
	platform.Backend
	see func()
}

func (b seeing) Confine(p *policy.Policy, hooks platform.Hooks) (platform.Confinement, error) {
	b.see()
	return b.Backend.Confine(p, hooks)
}

// Starts that fail again and again in each way leave no directory, and no
// descriptor, also of a process. SIDECAR_EVERY_STEP tries each way 500 times. It
// counts the descriptors of this process, so nothing else runs beside it.
func TestStart_ManyFailuresLeaveNothing(t *testing.T) {
	rounds := 10
	if os.Getenv("SIDECAR_EVERY_STEP") != "" {
		rounds = 500
	}
	descriptors := func(t *testing.T) int {
		t.Helper()
		open, err := os.ReadDir("/dev/fd")
		if err != nil {
			t.Fatal(err)
		}
		return len(open)
	}
	for _, way := range failures() {
		t.Run(way.name, func(t *testing.T) {
			var s *fixture
			made := 0
			s = newFixture(t, seeing{way.backend, func() {
				list, _ := filepath.Glob(filepath.Join(s.dir, ".local/state/sandbox-sidecar/run/s*"))
				made += len(list)
			}})
			confined := way
			confined.change = func(r *Request) {
				r.Policy = restrictedForTests
				way.change(r)
			}
			s.fail(t, confined) // what is made once stays
			s.mustLeaveNothing(t)
			before := descriptors(t)
			for range rounds {
				s.fail(t, confined)
			}
			s.mustLeaveNothing(t)
			// A missing directory is noticed before anything is made.
			if made <= rounds && way.name != "a missing directory" {
				t.Errorf("control: %d directories were made", made)
			}
			if !deadline.Until(timeout, func() bool { return descriptors(t) <= before }) {
				t.Errorf("%d descriptors were open, and now %d", before, descriptors(t))
			}
		})
	}
}
