package spawn

import (
	"errors"
	"fmt"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
)

// unavailable decides what a backend's refusal to confine means: nil to go on
// unconfined, which the policy must allow, or the error that ends the attempt.
// A session that must not have the network is never started with it, whatever
// the policy allows otherwise.
func unavailable(p *policy.Policy, err error) error {
	if p.OnUnavailable == policy.Warn && p.Network.Allowed {
		return nil
	}
	hint := `run "sandbox-sidecar doctor" to see what is missing; the setting on_unavailable: "warn" starts sessions without a sandbox`
	if !p.Network.Allowed {
		hint = "set allow_network to true, or do without the session"
	}
	if errors.Is(err, platform.ErrUnprotected) {
		hint = `see "sandbox-sidecar doctor"; without on_unavailable: "refuse" changes of protected paths are noticed, and not prevented`
	}
	return &Error{Attempt: "confine session", Cause: fmt.Errorf("%w: %w", ErrUnavailable, err), Hint: hint}
}
