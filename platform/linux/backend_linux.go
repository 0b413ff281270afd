package linux

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
)

// Backend confines by Landlock. It holds no state; the zero value is ready.
type Backend struct{}

// Name is "linux".
func (Backend) Name() string { return "linux" }

// Stage runs this very binary again. The link stays true when the file on disk is replaced by another version.
func (Backend) Stage() (string, []string) {
	return "/proc/self/exe", []string{"sandbox-sidecar", "stage"}
}

// Confine translates the policy for this kernel. Switching the network off needs a filter of system calls that this version does not
// have: such a policy is refused.
func (Backend) Confine(p *policy.Policy) (platform.Confinement, error) {
	abi, err := abiVersionOf()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", platform.ErrUnavailable, err)
	}
	if !p.Network.Allowed {
		return nil, fmt.Errorf("%w: allow_network is false, and this version cannot switch the network off", platform.ErrUnavailable)
	}
	confinement, err := json.Marshal(Translate(p, abi))
	if err != nil {
		return nil, fmt.Errorf("write ruleset: %w", err)
	}
	return confinement, nil
}

// Probe confines a process that is thrown away, with a policy that grants nothing, and reports what it saw from inside.
func (b Backend) Probe(ctx context.Context) map[string]platform.Protection {
	strictest := &policy.Policy{
		Restricted: true,
		Network:    policy.Network{Allowed: true},
		Protected:  []policy.Protected{{Path: "/"}},
		OnDenied:   policy.Report,
	}
	confinement, err := b.Confine(strictest)
	if err != nil {
		return absent(err)
	}
	enforcement, err := platform.ProbeStage(ctx, b, confinement)
	if err != nil {
		return absent(fmt.Errorf("confine a process for a test: %w", err))
	}
	network := enforcement.Protections[platform.Network]
	network.NotAsked = false
	enforcement.Protections[platform.Network] = network
	return enforcement.Protections
}
