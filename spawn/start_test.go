//go:build unix

package spawn

import (
	"strings"
	"sync"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/platformtest"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
	"github.com/sandbox-sidecar/sandbox-sidecar/spawn/history"
)

// keepsPolicy is a backend that keeps the policy of the last session.
type keepsPolicy struct {
	platform.Backend
	mu     sync.Mutex // guards policy
	policy policy.Policy
}

func (b *keepsPolicy) Confine(p *policy.Policy, hooks platform.Hooks) (platform.Confinement, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.policy = *p
	return b.Backend.Confine(p, hooks)
}

// A session has a history if its policy says so, and if a user types into it.
// The start grants nothing for it.
func TestStart_TheHistoryIsThePolicys(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		change func(s *fixture, r *Request)
		has    bool
	}{
		"a terminal":          {func(*fixture, *Request) {}, true},
		"a tool":              {func(_ *fixture, r *Request) { r.Tool = true }, false},
		"a pipe":              {func(_ *fixture, r *Request) { r.Pipe = true }, false},
		"nobody types":        {func(_ *fixture, r *Request) { r.NoInput = true }, false},
		"another policy":      {func(_ *fixture, r *Request) { r.Policy = *history.Without(&r.Policy) }, false},
		"another home inside": {func(s *fixture, r *Request) { r.Env = append(r.Env, "XDG_STATE_HOME="+s.dir) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			backend := &keepsPolicy{Backend: &platformtest.Fake{}}
			s := newFixture(t, backend)
			request := s.line("echo file=$HISTFILE.")
			request.Policy = policy.Policy{Restricted: true, Project: s.dir}
			places, err := history.Look(request.Env)
			if err != nil {
				t.Fatal(err)
			}
			found, err := places.Find(history.Request{Project: s.dir, Policy: &request.Policy})
			if err != nil {
				t.Fatal(err)
			}
			request.Policy.Rules, request.Policy.Replaced = found.Rules, found.Replaced
			test.change(s, &request)
			_, r := s.begin(t, request)
			_, output := r.end(t)
			backend.mu.Lock()
			defer backend.mu.Unlock()
			if granted := history.Granted(&backend.policy); granted != test.has ||
				strings.Contains(output, "bash_history.") != test.has {
				t.Errorf("granted %t, %q, rules %+v", granted, output, backend.policy.Rules)
			}
		})
	}
}
