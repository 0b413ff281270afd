package darwin

import (
	"github.com/sandbox-sidecar/sandbox-sidecar/lifecycle"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/handshake"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
)

// Plan is a policy in Seatbelt's terms, before the kernel's spelling of its
// paths is known. The sidecar sends it to the stage.
type Plan struct {
	// TrackOnly restricts nothing and only makes the process recognisable. Then
	// only Tag and Fingerprint count.
	TrackOnly bool `json:"trackOnly,omitempty"`
	// Tag marks the session's denials in the system log.
	Tag string `json:"tag"`
	// Fingerprint makes the session's processes recognisable; the zero value
	// adds nothing to the profile.
	Fingerprint lifecycle.SessionFingerprint `json:"fingerprint"`
	Grants      []Grant                      `json:"grants"`
	// Protected paths stay unchanged even if a grant covers them, except paths
	// in missing directories; see Scene.Unkept.
	Protected []handshake.RawString `json:"protected"`
	// Sockets of outside processes may be connected to.
	Sockets []handshake.RawString `json:"sockets"`
	// Closed are the sidecar's own directories. Only what is granted below them
	// is visible.
	Closed []handshake.RawString `json:"closed"`
	// Fixed are the sidecar's own files and those that decide about sessions.
	// They can be neither written nor created, whatever is granted.
	Fixed []handshake.RawString `json:"fixed"`
	// Network opens the whole network; otherwise nothing is open, not even
	// localhost.
	Network bool `json:"network"`
	// Everything says that the session may read the whole disk, so that names of
	// files are no secret.
	Everything bool `json:"everything,omitempty"`
	// Proxy is the one port of the loopback interface that is open while the
	// network is off: the sidecar's proxy, which connects to allowed hosts; 0 if
	// there is none.
	Proxy uint16 `json:"proxy,omitempty"`
	// Canary is a directory that everybody may list and that the profile must
	// close; empty if the policy leaves none.
	Canary    string    `json:"canary"`
	Requested Requested `json:"requested"`
	// Dialect is what the compiler of this macOS takes.
	Dialect Dialect `json:"dialect"`
	// Trial is a profile to try instead of all that; nil for a session.
	Trial *Profile `json:"trial,omitempty"`
}

// Grant grants access to a path and everything below it.
type Grant struct {
	Path   handshake.RawString `json:"path"`
	Access policy.Access       `json:"access"`
	// Required says that the stage fails if the path cannot be granted, as for
	// the project directory.
	Required bool `json:"required,omitempty"`
	// Private marks the session's own directory, in which no outside process
	// has a socket.
	Private bool `json:"private,omitempty"`
}

// Requested are the protections that a policy may leave out.
type Requested struct {
	Network        bool `json:"network"`
	Hosts          bool `json:"hosts,omitempty"`
	Localhost      bool `json:"localhost,omitempty"`
	ProtectedPaths bool `json:"protectedPaths"`
	Temporary      bool `json:"temporary,omitempty"`
	Hidden         bool `json:"hidden,omitempty"`
	Caches         bool `json:"caches,omitempty"`
	Denials        bool `json:"denials"`
}

// canaries are directories that everybody may list and no program needs to list
// at its start.
var canaries = []string{"/Users", "/Library", "/Applications", "/private/var", "/Volumes"}

// Host is the part of a plan that does not come from the policy.
type Host struct {
	Tag         string
	Fingerprint lifecycle.SessionFingerprint
	Closed      []string
	Fixed       []string
}

// Translate turns a policy into a plan. It is pure: the stage checks which
// paths exist.
func Translate(p *policy.Policy, host Host) Plan {
	plan := Plan{
		Tag: host.Tag, Fingerprint: host.Fingerprint,
		Closed: handshake.RawStrings(host.Closed), Fixed: handshake.RawStrings(host.Fixed),
		Network: p.Network.Allowed,
		Requested: Requested{
			Network: !p.Network.Allowed, Hosts: p.Network.ByHost(), ProtectedPaths: len(p.Protected) > 0,
			Localhost: p.Network.Allowed && p.Network.Localhost != policy.LocalhostAll,
			Temporary: len(p.Temporary) > 0, Hidden: len(p.Hidden) > 0, Caches: len(p.Caches) > 0,
			Denials: p.OnDenied != policy.Ignore,
		},
	}
	for _, rule := range p.Rules {
		if rule.Access == 0 {
			continue
		}
		own := rule.Origin.File == policy.OriginSession
		plan.Grants = append(plan.Grants, Grant{
			Path: handshake.RawString(rule.Path), Access: rule.Access, Required: own,
			Private: own && rule.Path != p.Project,
		})
	}
	for _, protected := range p.Protected {
		if protected.Pattern {
			continue // what exists has an entry of its own
		}
		if protected.Decides {
			plan.Fixed = append(plan.Fixed, handshake.RawString(protected.Path))
			continue
		}
		plan.Protected = append(plan.Protected, handshake.RawString(protected.Path))
	}
	for _, socket := range p.UnixSockets {
		if socket.Path != "" { // macOS has no abstract names
			plan.Sockets = append(plan.Sockets, handshake.RawString(socket.Path))
		}
	}
	_, plan.Everything = p.Find(policy.Read, "/")
	for _, path := range canaries {
		if _, granted := p.Find(policy.Read, path); !granted {
			plan.Canary = path
			break
		}
	}
	return plan
}

// TrackOnly returns the plan that restricts nothing and only makes a session's
// processes recognisable.
func TrackOnly(fingerprint lifecycle.SessionFingerprint, tag string) Plan {
	return Plan{TrackOnly: true, Tag: tag, Fingerprint: fingerprint}
}
