package linux

import (
	"context"
	"fmt"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/linux/namespace"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/linux/seccomp"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
)

// Backend confines by Landlock and a filter of system calls, in namespaces
// where there are any. The zero value is ready.
type Backend struct {
	// Guess lets Confine suppose the namespaces that most machines have, as
	// long as nobody has found out, which takes longer than a session's start.
	// A stage that cannot have them executes nothing; then
	// Confinement.InvalidateGuess finds out, and Confine is to be called again.
	Guess bool
	// namespaces are those to be used; nil: those of this machine.
	namespaces *namespace.Available
}

// Name is "linux".
func (Backend) Name() string { return "linux" }

// Stage runs this very binary again. The link stays true when the file on disk
// is replaced by another version.
func (Backend) Stage() (string, []string) {
	return "/proc/self/exe", []string{"sandbox-sidecar", "stage"}
}

// Confine translates the policy for this kernel, which must have both Landlock
// and filters of system calls. The first call finds out, in some milliseconds,
// which namespaces this machine has.
func (b Backend) Confine(p *policy.Policy, hooks platform.Hooks) (platform.Confinement, error) {
	abi, err := abiVersionOf()
	if err != nil {
		return platform.Confinement{}, fmt.Errorf("%w: %w", platform.ErrUnavailable, err)
	}
	if err := seccomp.Available(); err != nil {
		return platform.Confinement{}, fmt.Errorf("%w: %w", platform.ErrUnavailable, err)
	}
	ruleset := Translate(p, abi)
	ruleset.Errata = unfixedErrata(abi, fixedErrata())
	var invalidateGuess func()
	if ruleset.Requested.needsNamespaces() {
		available, guessed := b.available()
		if guessed {
			invalidateGuess = func() { availableNamespaces() }
		}
		if p.RequireProtected && !available.Mounts {
			return platform.Confinement{}, fmt.Errorf("%w: %w: %s", platform.ErrUnavailable, platform.ErrUnprotected,
				available.Gap)
		}
		ruleset.Namespaces, ruleset.NamespaceGap = available.Plan(
			ruleset.Requested.Terminals, ruleset.Requested.Network, namespace.PlanMounts(p)), available.Gap
	}
	if ruleset.Namespaces == nil {
		ruleset.dropGuarded(p)
	}
	for _, dir := range hooks.Learn {
		// To execute a file is to read it, too (get_required_file_open_access
		// in the kernel's security/landlock/fs.c).
		ruleset.Rules = append(ruleset.Rules, Rule{Path: platform.RawString(dir), Access: (fsRead | fsExecute) & ruleset.FS})
	}
	confinement, err := confine(ruleset, p, hooks)
	if err == nil && ruleset.Requested.ProtectedPaths {
		confinement.Watch = watchProtected(p, ruleset.Namespaces != nil)
	}
	confinement.InvalidateGuess = invalidateGuess
	return confinement, err
}

func (b Backend) available() (n namespace.Available, guessed bool) {
	switch {
	case b.namespaces != nil:
		return *b.namespaces, false
	case b.Guess && !namespacesKnown.Load():
		return likelyNamespaces(), true
	}
	return availableNamespaces(), false
}

// Probe confines a process that is thrown away, with a policy that grants
// nothing, the network neither, and reports what it saw from inside.
func (b Backend) Probe(ctx context.Context) map[string]platform.Protection {
	b.Guess = false
	confinement, err := b.Confine(strictestPolicy(), platform.Hooks{Denied: func(platform.Denial) {}})
	if err != nil {
		return absent(err)
	}
	enforcement, err := platform.ProbeStage(ctx, b, confinement)
	if err != nil {
		return absent(fmt.Errorf("confine a process for a test: %w", err))
	}
	return enforcement.Protections
}
