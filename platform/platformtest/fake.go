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
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/handshake"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
)

// Fake is a backend that confines nothing. It starts real processes through a
// real stage, which calls ConfineFake, and reports what the test says. The zero
// value reports every protection as enforced. Set the fields before the first
// use.
type Fake struct {
	// Enforcement is the stage's report. Nil protections stand for ones that
	// are all enforced.
	Enforcement platform.Enforcement
	// Unavailable, if set, is the error of Confine. Probe then reports every
	// protection as absent with the error as detail.
	Unavailable error
	// Failure, if not empty, is why the stage fails to confine itself.
	Failure string
	// Hold, if set, makes the stage wait while it confines itself. Unconfined
	// orders do not wait.
	Hold *Hold
	// Passed lists the descriptors that the stage passes. Each is the reading
	// end of a pipe that contains the kind's name.
	Passed []handshake.Passed
	// Supervise is that of every confinement. Passed must then contain a
	// PassedListener, and may contain a PassedDiag.
	Supervise func(platform.Handover) (platform.Supervision, error)
	// Unconfirmed, if not empty, is why the stage finds itself unsupervised.
	Unconfirmed string
	// Collect makes the stage run the garbage collector while it confines
	// itself, as a long order may do.
	Collect bool

	mu       sync.Mutex // guards what follows
	confined []*policy.Policy
	hooks    []platform.Hooks
}

// What the stage of a Fake passes to be supervised.
const (
	PassedListener handshake.Passed = "listener"
	PassedDiag     handshake.Passed = "diag"
)

// Descriptors are those of a Fake that is supervised.
var Descriptors = []platform.Descriptor{{Kind: PassedListener, Required: true}, {Kind: PassedDiag}}

// fakeOrders are a Fake's orders for ConfineFake.
type fakeOrders struct {
	Enforcement platform.Enforcement `json:"enforcement"`
	Failure     string               `json:"failure"`
	Hold        *Hold                `json:"hold"`
	Passed      []handshake.Passed   `json:"passed"`
	Unconfirmed string               `json:"unconfirmed"`
	Collect     bool                 `json:"collect"`
}

// Name is "fake".
func (f *Fake) Name() string { return "fake" }

// Likely is what Confine returns, without orders.
func (*Fake) Likely() platform.Confinement { return platform.Confinement{} }

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
		Enforcement: f.enforcement(), Failure: f.Failure, Hold: f.Hold, Passed: f.Passed,
		Unconfirmed: f.Unconfirmed, Collect: f.Collect,
	})
	confinement := platform.Confinement{Orders: orders}
	if f.Supervise != nil {
		confinement.Descriptors, confinement.Supervise = Descriptors, f.Supervise
	}
	return confinement, err
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
		enforcement.Protections = allProtections(platform.Protection{
			Status: platform.Enforced, Mechanism: "fake",
			Detail: "nothing is confined",
		})
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

// ConfineFake is Fake's part in the stage.
func ConfineFake(order *platform.Order) (handshake.Confined, error) {
	var orders fakeOrders
	if err := json.Unmarshal(order.Orders, &orders); err != nil {
		return handshake.Confined{}, fmt.Errorf("read fake orders: %w", err)
	}
	if orders.Collect {
		collect()
	}
	if orders.Hold != nil {
		if err := orders.Hold.wait(); err != nil {
			return handshake.Confined{}, err
		}
	}
	if orders.Failure != "" {
		return handshake.Confined{}, errors.New(orders.Failure)
	}
	confined := handshake.Confined{Enforcement: orders.Enforcement}
	if orders.Unconfirmed != "" {
		confined.Confirm = func() error { return errors.New(orders.Unconfirmed) }
	}
	for _, kind := range orders.Passed {
		fd, err := pipeWith(string(kind))
		if err != nil {
			return handshake.Confined{}, err
		}
		confined.Passed = append(confined.Passed, handshake.PassedFile{Kind: kind, FD: fd})
	}
	return confined, nil
}

// collect returns once all garbage is finalized. What loses its last reference
// in one collection may be found only in the next.
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

// pipeWith returns the reading end of a pipe that contains a text.
func pipeWith(text string) (int, error) {
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
