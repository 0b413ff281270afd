package platform

import (
	"context"
	"fmt"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/handshake"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
)

// Unsupported is the backend of a system for which there is no sandbox. It
// starts unconfined sessions only.
type Unsupported struct {
	// System is the operating system's name.
	System string
	// Executable is the path of this very binary.
	Executable string
}

// Name is the operating system's name.
func (u Unsupported) Name() string { return u.System }

// Likely confines nothing: a stage is started in the same way for all policies.
func (Unsupported) Likely() Confinement { return Confinement{} }

// Stage runs this very binary again.
func (u Unsupported) Stage() (string, []string) {
	return u.Executable, []string{"sandbox-sidecar", "stage"}
}

// Confine always fails.
func (u Unsupported) Confine(*policy.Policy, Hooks) (Confinement, error) {
	return Confinement{}, fmt.Errorf("%w: this version has no sandbox for %s", ErrUnavailable, u.System)
}

// Probe reports every protection as absent.
func (u Unsupported) Probe(context.Context) map[string]Protection {
	protections := map[string]Protection{}
	for _, name := range Protections {
		if name != ProcessTracking {
			protections[name] = Protection{Status: Absent, Detail: "this version has no sandbox for " + u.System}
		}
	}
	return protections
}

// RefuseToConfine is Unsupported's part in the stage.
func RefuseToConfine(*Order) (handshake.Confined, error) { return handshake.Confined{}, ErrUnavailable }
