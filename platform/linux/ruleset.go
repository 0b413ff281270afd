package linux

import (
	"fmt"
	"strings"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/linux/namespace"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/linux/seccomp"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
)

// Ruleset is a policy in the kernel's terms: what Landlock governs, what is
// granted of it, and what the filter of system calls is for. It is what the
// sidecar sends to the stage.
type Ruleset struct {
	ABI    int      `json:"abi"`
	FS     FSAccess `json:"fs"`
	Scoped Scope    `json:"scoped"`
	Rules  []Rule   `json:"rules"`
	// Canary is refused once the ruleset is in force.
	Canary *Canary `json:"canary"`
	// Requested says which protections the policy wants.
	Requested Requested `json:"requested"`
	// Namespaces is what the stage makes in its namespaces; nil if it is
	// started in none.
	Namespaces *namespace.Setup `json:"namespaces,omitempty"`
	// NamespaceGap says which namespaces this machine does not have; empty if
	// it has all of them, or if the session needs none.
	NamespaceGap string `json:"namespaceGap,omitempty"`
	// Filtering is what the filter does.
	Filtering seccomp.Filtering `json:"filtering"`
	// Program is the filter itself, as Program.bytes; made by the sidecar,
	// which makes each but once.
	Program []byte `json:"program,omitempty"`
	// MediationGap says why Filtering.Sockets is false although Landlock does not
	// know sockets; empty where it is not so.
	MediationGap string `json:"mediationGap,omitempty"`
	// SupervisionGap says why Filtering.Priorities is false; empty where it is
	// not.
	SupervisionGap string `json:"supervisionGap,omitempty"`
	// Errata say what faults of this kernel's Landlock let a session do; see
	// unfixedErrata.
	Errata []string `json:"errata,omitempty"`
	// ObservationGap says why Filtering.Observed is not what Asked.Denials wants;
	// empty where it is.
	ObservationGap string `json:"observationGap,omitempty"`
	// Logged lets Landlock log what it refuses to the session's programs,
	// because the sidecar reads that; see package audit.
	Logged bool `json:"logged,omitempty"`
	// LogGap says why not; empty where nobody wants to know, or this kernel
	// could not.
	LogGap string `json:"logGap,omitempty"`
	// Missing are grants that the sidecar found to have no effect.
	Missing []platform.Missing `json:"missing,omitempty"`
	// Warnings are for the user's eyes.
	Warnings []string `json:"warnings,omitempty"`
	// Network names the sidecar's network namespace by its inode; 0 where that
	// is not known.
	Network uint64 `json:"network,omitempty"`
}

// Rule grants rights below a path. Rights that mean nothing on a file are left
// out by the stage where the path is one.
type Rule struct {
	Path   platform.RawString `json:"path"`
	Access FSAccess           `json:"access"`
	// Required rules must be granted: a session without its project directory
	// is not the session that was asked for.
	Required bool `json:"required,omitempty"`
}

// Canary is an access that works before the ruleset is in force and must not
// work after.
type Canary struct {
	// Path is a directory that everybody may list.
	Path string `json:"path"`
}

// Requested are the protections that a policy may leave out.
type Requested struct {
	// Network is true where the network is to be off.
	Network bool `json:"network"`
	// Terminals is true where the session is to have its own.
	Terminals      bool `json:"terminals"`
	ProtectedPaths bool `json:"protectedPaths"`
	Denials        bool `json:"denials"`
	// WholeFilesystem is true where the policy grants reading all of "/", so
	// that nothing is left for the canary.
	WholeFilesystem bool `json:"wholeFilesystem"`
}

// needsNamespaces reports whether anything that is requested takes namespaces.
func (r Requested) needsNamespaces() bool { return r.Terminals || r.Network || r.ProtectedPaths }

// canaryPaths are directories that exist everywhere and that everybody may list
// (mode 0755 or 0555).
var canaryPaths = []string{"/", "/sys", "/boot", "/var", "/home"}

// Translate turns a policy into a ruleset for a kernel with the given ABI
// version. It is pure: whether paths exist is the stage's business.
func Translate(p *policy.Policy, abi int) Ruleset {
	fs, scoped := handled(abi)
	ruleset := Ruleset{ABI: abi, FS: fs, Scoped: scoped, Rules: []Rule{}}
	for _, rule := range p.Rules {
		access := translateAccess(rule.Access) & fs
		if access == 0 {
			continue
		}
		ruleset.Rules = append(ruleset.Rules, Rule{
			Path: platform.RawString(rule.Path), Access: access,
			Required: rule.Origin.File == policy.OriginSession,
		})
	}
	for _, socket := range p.UnixSockets {
		if socket.Path != "" && fsConnect&fs != 0 {
			ruleset.Rules = append(ruleset.Rules, Rule{Path: platform.RawString(socket.Path), Access: fsConnect})
		}
	}
	for _, path := range canaryPaths {
		if _, granted := p.Find(policy.Read, path); !granted {
			ruleset.Canary = &Canary{Path: path}
			break
		}
	}
	ruleset.Requested = Requested{
		Network:         !p.Network.Allowed,
		Terminals:       p.PrivateTerminals,
		ProtectedPaths:  len(p.Protected) > 0,
		Denials:         p.OnDenied != policy.Ignore,
		WholeFilesystem: ruleset.Canary == nil,
	}
	return ruleset
}

// dropGuarded takes back what a policy grants only where protected paths are
// kept as they are.
func (r *Ruleset) dropGuarded(p *policy.Policy) {
	guarded := map[platform.RawString]FSAccess{}
	for _, rule := range p.Rules {
		if rule.Guarded != 0 {
			guarded[platform.RawString(rule.Path)] = translateAccess(rule.Guarded)
		}
	}
	for i, rule := range r.Rules {
		r.Rules[i].Access &^= guarded[rule.Path]
	}
}

func translateAccess(access policy.Access) FSAccess {
	var fs FSAccess
	for _, pair := range []struct {
		from policy.Access
		to   FSAccess
	}{{policy.Read, fsRead}, {policy.Write, fsWrite}, {policy.Execute, fsExecute}, {policy.Device, fsDevice}} {
		if access.Has(pair.from) {
			fs |= pair.to
		}
	}
	return fs
}

// String renders the ruleset for people and golden files.
func (r Ruleset) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "landlock abi %d\nhandled %s\nscoped %s\n", r.ABI, r.FS, r.Scoped)
	if r.Canary != nil {
		fmt.Fprintf(&b, "canary list %q\n", r.Canary.Path)
	}
	for _, rule := range r.Rules {
		required := ""
		if rule.Required {
			required = " (required)"
		}
		fmt.Fprintf(&b, "allow %q %s%s\n", rule.Path, rule.Access, required)
	}
	return b.String()
}
