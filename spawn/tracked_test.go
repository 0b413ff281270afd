//go:build unix

package spawn

import (
	"errors"
	"strings"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/platformtest"
)

// A sandbox that only serves to recognise processes is none for the user: it
// restricts nothing, no reply mentions it, and without it the session starts
// all the same.
func TestStart_TrackingBySandboxRestrictsNothing(t *testing.T) {
	t.Parallel()
	for name, backend := range map[string]*platformtest.Fake{
		"available": {}, "unavailable": {Unavailable: errors.New("not today")},
	} {
		s := newFixture(t, backend)
		request := s.line("echo secret is $SECRET, runtime is ${XDG_RUNTIME_DIR-unset}")
		request.Env = append(request.Env, "SECRET=kept")
		request.Policy.TrackBySandbox, request.Policy.PrivateRuntimeDir = true, true
		session, r := s.begin(t, request)
		if _, output := r.end(t); !strings.Contains(output, "secret is kept, runtime is unset") {
			t.Errorf("%s: output %q", name, output)
		}
		outcome := session.Outcome()
		if outcome.Confined || outcome.Unconfinable != nil || len(outcome.Protections()) > 0 || outcome.Full() {
			t.Errorf("%s: outcome %+v", name, outcome)
		}
		confined := backend.Confined()
		if len(confined) != 1 || confined[0].Restricted || !confined[0].TrackBySandbox {
			t.Errorf("%s: the backend was asked for %+v", name, confined)
		}
	}
	// The control: without TrackBySandbox the backend is not called.
	backend := &platformtest.Fake{}
	s := newFixture(t, backend)
	_, r := s.begin(t, s.line("true"))
	r.end(t)
	if confined := backend.Confined(); len(confined) > 0 {
		t.Errorf("the backend was asked for %+v", confined)
	}
}
