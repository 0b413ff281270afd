package linux

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
)

// Backend confines by Landlock and a filter of system calls. It holds no state; the zero value is ready.
type Backend struct{}

// Name is "linux".
func (Backend) Name() string { return "linux" }

// Stage runs this very binary again. The link stays true when the file on disk is replaced by another version.
func (Backend) Stage() (string, []string) {
	return "/proc/self/exe", []string{"sandbox-sidecar", "stage"}
}

// Confine translates the policy for this kernel, which must have both Landlock and filters of system calls.
func (Backend) Confine(p *policy.Policy, _ platform.Needs) (platform.Confinement, error) {
	abi, err := abiVersionOf()
	if err != nil {
		return platform.Confinement{}, fmt.Errorf("%w: %w", platform.ErrUnavailable, err)
	}
	if err := seccompAvailable(); err != nil {
		return platform.Confinement{}, fmt.Errorf("%w: %w", platform.ErrUnavailable, err)
	}
	orders, err := json.Marshal(Translate(p, abi))
	if err != nil {
		return platform.Confinement{}, fmt.Errorf("write ruleset: %w", err)
	}
	return platform.Confinement{Orders: orders}, nil
}

// Probe confines a process that is thrown away, with a policy that grants nothing, the network neither, and reports what it saw from
// inside.
func (b Backend) Probe(ctx context.Context) map[string]platform.Protection {
	strictest := &policy.Policy{
		Restricted: true,
		Protected:  []policy.Protected{{Path: "/"}},
		OnDenied:   policy.Report,
	}
	confinement, err := b.Confine(strictest, platform.Needs{})
	if err != nil {
		return absent(err)
	}
	enforcement, err := platform.ProbeStage(ctx, b, confinement)
	if err != nil {
		return absent(fmt.Errorf("confine a process for a test: %w", err))
	}
	return enforcement.Protections
}
