//go:build unix

package spawn

import (
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/platformtest"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
)

// proxied is a backend whose sessions need a variable of their own.
type proxied struct{ platformtest.Fake }

func (b *proxied) Confine(p *policy.Policy, hooks platform.Hooks) (platform.Confinement, error) {
	confinement, err := b.Fake.Confine(p, hooks)
	confinement.Environ = []string{"HTTP_PROXY=the session's"}
	return confinement, err
}

func TestStart_ABackendsVariablesReplaceTheUsers(t *testing.T) {
	t.Parallel()
	s := newFixture(t, &proxied{})
	request := s.line(`[ "$HTTP_PROXY" = "the session's" ] && exit 3`)
	request.Env = append(request.Env, "HTTP_PROXY=the user's")
	request.Policy = policy.Policy{Restricted: true}
	running, err := s.Foreground(t.Context(), request)
	if err != nil {
		t.Fatal(err)
	}
	if exit, err := running.Wait(); err != nil || exit.Code != 3 {
		t.Errorf("%+v, %v", exit, err)
	}
}
