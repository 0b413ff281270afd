//go:build unix

package platformtest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"runtime"
	"slices"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
)

// Fake is a backend that confines nothing. It starts real processes by a real
// stage, which calls ConfineFake, and reports what it is told. The zero value
// reports every protection as enforced. The fields are set before the first use
// and not changed after it.
type Fake struct {
	// Enforcement is what the stage reports; nil protections are replaced by
	// ones that are all enforced.
	Enforcement platform.Enforcement
	// Unavailable is the error of Confine; where it is set, Probe reports every
	// protection as absent with the error as detail.
	Unavailable error
	// Failure, where it is not empty, is why the stage fails to confine itself.
	Failure string
	// Hold, where it is set, lets the stage wait in the middle of confining
	// itself. Unconfined orders do not wait.
	Hold *Hold
	// Passed is what the stage hands over: for each kind the reading end of a
	// pipe that says the kind and ends.
	Passed []platform.Passed
	// Supervise becomes that of every confinement; Passed must then hold a
	// platform.PassedListener.
	Supervise func(platform.Handover) (platform.Supervision, error)
	// Unconfirmed, where it is not empty, is why the stage finds itself
	// unsupervised.
	Unconfirmed string
	// Collect is true where the stage's garbage is collected while it confines
	// itself, as a long order may bring it about.
	Collect bool

	mu       sync.Mutex // guards what follows
	confined []*policy.Policy
	hooks    []platform.Hooks
}

// fakeOrders are what a Fake tells ConfineFake.
type fakeOrders struct {
	Enforcement platform.Enforcement `json:"enforcement"`
	Failure     string               `json:"failure"`
	Hold        *Hold                `json:"hold"`
	Passed      []platform.Passed    `json:"passed"`
	Unconfirmed string               `json:"unconfirmed"`
	Collect     bool                 `json:"collect"`
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

// Confine records the policy and the hooks.
func (f *Fake) Confine(p *policy.Policy, hooks platform.Hooks) (platform.Confinement, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.confined = append(f.confined, p)
	f.hooks = append(f.hooks, hooks)
	if f.Unavailable != nil {
		return platform.Confinement{}, f.Unavailable
	}
	orders, err := json.Marshal(fakeOrders{
		Enforcement: f.enforcement(), Failure: f.Failure, Hold: f.Hold, Passed: f.Passed, Unconfirmed: f.Unconfirmed, Collect: f.Collect,
	})
	return platform.Confinement{Orders: orders, Supervise: f.Supervise}, err
}

// Confined returns every policy that Confine was called with so far, in order.
func (f *Fake) Confined() []*policy.Policy {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.confined)
}

// Hooks returns the hooks that Confine was called with so far, in order.
func (f *Fake) Hooks() []platform.Hooks {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.hooks)
}

func (f *Fake) enforcement() platform.Enforcement {
	enforcement := f.Enforcement
	enforcement.Protections = maps.Clone(enforcement.Protections)
	if enforcement.Protections == nil {
		enforcement.Protections = allProtections(platform.Protection{Status: platform.Enforced, Mechanism: "fake",
			Detail: "nothing is confined"})
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
func ConfineFake(order *platform.Order) (platform.Confined, error) {
	var orders fakeOrders
	if err := json.Unmarshal(order.Orders, &orders); err != nil {
		return platform.Confined{}, fmt.Errorf("read fake orders: %w", err)
	}
	if orders.Collect {
		collect()
	}
	if orders.Hold != nil {
		if err := orders.Hold.wait(); err != nil {
			return platform.Confined{}, err
		}
	}
	if orders.Failure != "" {
		return platform.Confined{}, errors.New(orders.Failure)
	}
	confined := platform.Confined{Enforcement: orders.Enforcement}
	if orders.Unconfirmed != "" {
		confined.Confirm = func() error { return errors.New(orders.Unconfirmed) }
	}
	for _, kind := range orders.Passed {
		fd, err := telling(string(kind))
		if err != nil {
			return platform.Confined{}, err
		}
		confined.Passed = append(confined.Passed, platform.PassedFile{Kind: kind, FD: fd})
	}
	return confined, nil
}

// collect returns once all that was garbage is finalized: what lost its last
// reference in one collection may be found only in the next.
func collect() {
	for range 2 {
		done := make(chan struct{})
		runtime.SetFinalizer(&[64]byte{}, func(*[64]byte) { close(done) })
		for waiting := true; waiting; {
			runtime.GC()
			select {
			case <-done:
				waiting = false
			default:
			}
		}
	}
}

// telling is the reading end of a pipe that holds a text.
func telling(text string) (int, error) {
	var ends [2]int
	if err := unix.Pipe(ends[:]); err != nil {
		return 0, fmt.Errorf("make pipe: %w", err)
	}
	unix.CloseOnExec(ends[0])
	defer unix.Close(ends[1])
	if _, err := unix.Write(ends[1], []byte(text)); err != nil {
		return 0, fmt.Errorf("fill pipe: %w", err)
	}
	return ends[0], nil
}
