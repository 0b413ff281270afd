package linux

import (
	"context"
	"fmt"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/handshake"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/linux/localhost"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/linux/namespace"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/linux/overlay"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/linux/seccomp"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/linux/stage"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
)

// Backend confines sessions by Landlock and a filter of system calls, in
// namespaces if the machine has them. The zero value is ready to use.
type Backend struct {
	// Guess lets Confine assume that the machine has the usual namespaces, until
	// they have been tried, which takes longer than a session's start. A stage
	// that cannot start in them executes nothing. Then
	// Confinement.InvalidateGuess tries, and Confine must be called again.
	Guess bool
	// Caches makes the overlays over toolchains' caches. If it is nil, sessions
	// with policy.Policy.Caches cannot write those.
	Caches *overlay.Client
	// Listeners are what sessions of each project listen with at this machine's
	// localhost. If they are nil, each session knows its own alone.
	Listeners *localhost.Notes
	// namespaces replaces those of this machine in tests; nil otherwise.
	namespaces *namespace.Available
}

// Name is "linux".
func (Backend) Name() string { return "linux" }

// Stage runs this binary again. The link leads to the running binary even if the
// file on disk is replaced.
func (Backend) Stage() (string, []string) {
	return "/proc/self/exe", []string{"sandbox-sidecar", "stage"}
}

// Confine translates the policy for this kernel. The error wraps ErrUnavailable
// if the kernel has no Landlock or cannot filter system calls. The first call
// tries the namespaces of this machine, which takes some milliseconds; see
// Guess.
func (b Backend) Confine(p *policy.Policy, hooks platform.Hooks) (platform.Confinement, error) {
	abi, err := stage.LandlockABI()
	if err != nil {
		return platform.Confinement{}, fmt.Errorf("%w: %w", platform.ErrUnavailable, err)
	}
	if err := seccomp.Available(); err != nil {
		return platform.Confinement{}, fmt.Errorf("%w: %w", platform.ErrUnavailable, err)
	}
	ruleset := ruleset{stage.Translate(p, abi)}
	ruleset.Errata = unfixedErrata(abi, fixedErrata())
	var invalidateGuess func()
	var overlays *namespace.Overlays
	if ruleset.Requested.NeedsNamespaces() {
		available, guessed := b.available()
		if guessed {
			invalidateGuess = func() { availableNamespaces() }
		}
		if p.RequireProtected && !available.Mounts {
			return platform.Confinement{}, fmt.Errorf("%w: %w: %s", platform.ErrUnavailable, platform.ErrUnprotected,
				available.Gap)
		}
		p, overlays = ruleset.overlayCaches(b.Caches, available, p)
		ruleset.Namespaces = ruleset.plan(available, p)
		ruleset.NamespaceGap, ruleset.NamespaceFix = available.Gap, available.Fix
	}
	if ruleset.Namespaces == nil {
		ruleset.DropGuarded(p)
		p = sharedPolicy(p)
	} else {
		ruleset.Namespaces.Overlays = overlays
	}
	ruleset.planHosts(p, hooks)
	ruleset.Shared = hooks.Shared
	for _, dir := range hooks.Learn {
		// Executing a file needs the right to read it, too
		// (get_required_file_open_access, security/landlock/fs.c).
		ruleset.Rules = append(ruleset.Rules, stage.Rule{
			Path: handshake.RawString(dir), Access: (stage.FSRead | stage.FSExecute) & ruleset.FS,
		})
	}
	confinement, err := confine(ruleset, p, b.Listeners, hooks)
	confinement.InvalidateGuess = invalidateGuess
	confinement.OwnTemporary = ruleset.Namespaces != nil
	for _, c := range ruleset.LockedCaches {
		confinement.Lacking = append(confinement.Lacking, platform.Missing{
			Path: c.Path, Reason: "this cache is read-only, because it could not be made private: " + c.Reason,
		})
	}
	return confinement, err
}

// Likely is the confinement in the namespaces that Confine guesses, or has found.
func (b Backend) Likely() platform.Confinement {
	available, _ := b.available()
	setup := available.Plan(true, false)
	if setup == nil {
		return platform.Confinement{}
	}
	return platform.Confinement{Attach: setup.Attach, StandbyKey: setup.StandbyKey()}
}

// sharedPolicy is the policy of a session without namespaces, which sees
// everything that Landlock grants.
func sharedPolicy(p *policy.Policy) *policy.Policy {
	shared := *p
	shared.Temporary, shared.Hidden, shared.Replaced = nil, nil, nil
	return &shared
}

// available returns the namespaces to use, and whether they are a guess.
func (b Backend) available() (n namespace.Available, guessed bool) {
	switch {
	case b.namespaces != nil:
		return *b.namespaces, false
	case b.Guess && !namespacesKnown.Load():
		return likelyNamespaces(), true
	}
	return availableNamespaces(), false
}

// Probe confines a process that executes nothing, with a policy that grants
// nothing and refuses the network. It returns what that process reported.
func (b Backend) Probe(ctx context.Context) map[string]platform.Protection {
	b.Guess = false
	p := strictestPolicy()
	p.Network.AllowedHosts = []policy.Host{{Pattern: "probe.invalid"}}
	if b.Caches != nil {
		p.Caches = []policy.Cache{{Path: b.Caches.ProbePath()}}
		defer b.Caches.Probed()
	}
	confinement, err := b.Confine(p, platform.Hooks{Denied: func(platform.Denial) {}})
	if err != nil {
		return absent(err)
	}
	enforcement, err := platform.ProbeStage(ctx, b, confinement)
	if err != nil {
		return absent(fmt.Errorf("confine a process for a test: %w", err))
	}
	return enforcement.Protections
}

// absent is the report of a machine that has no Landlock or cannot filter system
// calls.
func absent(cause error) map[string]platform.Protection {
	protections := map[string]platform.Protection{}
	for _, name := range platform.Protections {
		if name != platform.ProcessTracking {
			protections[name] = platform.Protection{Status: platform.Absent, Detail: cause.Error(), Fix: fixKernel}
		}
	}
	return protections
}

const fixKernel = `use Linux 5.13 or newer on amd64 or arm64, with Landlock enabled ("landlock" in ` +
	`/sys/kernel/security/lsm; boot parameter lsm=landlock,…) and CONFIG_SECCOMP_FILTER`
