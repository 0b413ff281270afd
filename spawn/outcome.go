package spawn

import (
	"github.com/sandbox-sidecar/sandbox-sidecar/lifecycle"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform"
)

// Outcome says what a session got, as opposed to what its request asked for.
type Outcome struct {
	// Confined is true if the kernel confines the session.
	Confined bool
	// Unconfinable says why the session runs without the sandbox that its
	// policy asks for; nil for any other session.
	Unconfinable error
	// Enforcement is the stage's report; empty if Confined is false.
	Enforcement platform.Enforcement
	// Tracking says how the session's processes are held together.
	Tracking lifecycle.Tracking
	// Dropped are the names of the variables that the policy removed, sorted.
	Dropped []string
}

// Protections are what confines the session, process tracking included; empty
// if it is not confined.
func (o Outcome) Protections() Protections {
	if !o.Confined {
		return Protections{}
	}
	protections := Protections{platform.ProcessTracking: trackingProtection(o.Tracking)}
	for name, protection := range o.Enforcement.Protections {
		protections[name] = protection
	}
	return protections
}

// Full reports whether everything that the policy asks for is enforced.
func (o Outcome) Full() bool {
	return o.Confined && platform.Enforcement{Protections: o.Protections()}.Full()
}

func trackingProtection(t lifecycle.Tracking) platform.Protection {
	status := platform.Enforced
	if !t.Guarantee {
		status = platform.Degraded
	}
	return platform.Protection{Status: status, Mechanism: t.Mechanism, Detail: t.Detail, Fix: t.Fix}
}
