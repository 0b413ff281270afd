package platform

import (
	"context"
	"errors"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
)

// ErrUnavailable means that this machine cannot enforce a policy.
var ErrUnavailable = errors.New("sandbox unavailable")

// ErrUnprotected is the reason where a policy requires that protected paths are
// kept, and this machine can only watch them.
var ErrUnprotected = errors.New("protected paths cannot be kept as they are")

// Backend is one operating system's sandbox. Its methods may be called from
// several goroutines.
type Backend interface {
	// Name is the operating system: "linux", "darwin".
	Name() string
	// Probe says what can be enforced here, by really trying it in a process
	// that is thrown away. It has an entry for each of Protections, except
	// ProcessTracking, which is package lifecycle's.
	Probe(ctx context.Context) map[string]Protection
	// Confine translates a policy for the stage, and prepares what the session
	// needs beside. What of hooks the machine cannot give is no error; the
	// stage's report says what there is. The error wraps ErrUnavailable where
	// the machine lacks what the policy needs most, and says what; nothing may
	// then be started under that policy as if it held.
	Confine(p *policy.Policy, hooks Hooks) (Confinement, error)
	// Stage is the command line that runs the stage. The rest of the handshake
	// is RunStage's.
	Stage() (path string, argv []string)
}
