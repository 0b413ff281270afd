package platform

import (
	"context"
	"errors"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
)

// ErrUnavailable means that this machine cannot enforce a policy.
var ErrUnavailable = errors.New("sandbox unavailable")

// ErrUnprotected means that the policy requires protected paths to stay
// unchanged, and this machine can only report changes.
var ErrUnprotected = errors.New("changes of protected paths cannot be prevented, only reported")

// Backend is one operating system's sandbox. Its methods may be called from
// several goroutines.
type Backend interface {
	// Name is the operating system: "linux", "darwin".
	Name() string
	// Probe reports what can be enforced here. It confines a process that is
	// discarded afterwards. The result has an entry for each of Protections
	// except ProcessTracking, which package lifecycle reports.
	Probe(ctx context.Context) map[string]Protection
	// Confine translates a policy for the stage and prepares the sidecar's
	// part. A hook that this machine cannot serve is no error; the stage's
	// report says so. The error wraps ErrUnavailable if the machine lacks a
	// protection that the policy requires, and names it. Then no session may
	// start as if the policy were in force.
	Confine(p *policy.Policy, hooks Hooks) (Confinement, error)
	// Likely is a confinement without orders, with which a stage can be started
	// before the policy is known. It fits every policy for which Confine returns
	// the same StandbyKey.
	Likely() Confinement
	// Stage returns the command line that runs the stage. handshake.RunStage does
	// the rest.
	Stage() (path string, argv []string)
}
