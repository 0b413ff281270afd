//go:build unix

package platformtest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"sync"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
)

// Fake is a backend that confines nothing. It starts real processes by a real stage, which calls ConfineFake, and reports what it is
// told. The zero value reports every protection as enforced. The fields are set before the first use and not changed after it.
type Fake struct {
	// Enforcement is what the stage reports; nil protections are replaced by ones that are all enforced.
	Enforcement platform.Enforcement
	// Unavailable is the error of Confine; where it is set, Probe reports every protection as absent with the error as detail.
	Unavailable error
	// Failure, where it is not empty, is why the stage fails to confine itself.
	Failure string
	// Hold, where it is set, lets the stage wait in the middle of confining itself. Unconfined orders do not wait.
	Hold *Hold

	mu       sync.Mutex // guards confined
	confined []*policy.Policy
}

// fakeConfinement is what a Fake tells ConfineFake.
type fakeConfinement struct {
	Enforcement platform.Enforcement `json:"enforcement"`
	Failure     string               `json:"failure"`
	Hold        *Hold                `json:"hold"`
}

// Name is "fake".
func (f *Fake) Name() string { return "fake" }

// Stage runs the test binary again, whose TestMain calls Main with ConfineFake.
func (f *Fake) Stage() (string, []string) {
	path, err := os.Executable()
	if err != nil {
		path = os.Args[0]
	}
	return path, []string{"fake", "stage"}
}

// Probe reports what a stage would.
func (f *Fake) Probe(context.Context) map[string]platform.Protection {
	if f.Unavailable != nil {
		return allProtections(platform.Protection{Status: platform.Absent, Detail: f.Unavailable.Error()})
	}
	return f.enforcement().Protections
}

// Confine notes the policy.
func (f *Fake) Confine(p *policy.Policy) (platform.Confinement, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.confined = append(f.confined, p)
	if f.Unavailable != nil {
		return nil, f.Unavailable
	}
	return json.Marshal(fakeConfinement{Enforcement: f.enforcement(), Failure: f.Failure, Hold: f.Hold})
}

// Confined returns every policy that Confine was called with so far, in order.
func (f *Fake) Confined() []*policy.Policy {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.confined)
}

func (f *Fake) enforcement() platform.Enforcement {
	enforcement := f.Enforcement
	enforcement.Protections = maps.Clone(enforcement.Protections)
	if enforcement.Protections == nil {
		enforcement.Protections = allProtections(platform.Protection{Status: platform.Enforced, Mechanism: "fake", Detail: "nothing is confined"})
	}
	return enforcement
}

func allProtections(p platform.Protection) map[string]platform.Protection {
	all := map[string]platform.Protection{}
	for _, name := range platform.Protections {
		if name != platform.ProcessTracking {
			all[name] = p
		}
	}
	return all
}

// ConfineFake is the stage's half of Fake.
func ConfineFake(c platform.Confinement) (platform.Enforcement, error) {
	var order fakeConfinement
	if err := json.Unmarshal(c, &order); err != nil {
		return platform.Enforcement{}, fmt.Errorf("read fake confinement: %w", err)
	}
	if order.Hold != nil {
		if err := order.Hold.wait(); err != nil {
			return platform.Enforcement{}, err
		}
	}
	if order.Failure != "" {
		return platform.Enforcement{}, errors.New(order.Failure)
	}
	return order.Enforcement, nil
}
