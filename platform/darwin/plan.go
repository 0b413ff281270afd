package darwin

import (
	"encoding/json"

	"github.com/sandbox-sidecar/sandbox-sidecar/lifecycle"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
)

// Plan is a policy in Seatbelt's terms, before it is known how the kernel
// spells its paths. It is what the sidecar sends to the stage.
type Plan struct {
	// TrackOnly leaves the process unrestricted but for the fingerprint; of the
	// other fields only Tag and Fingerprint count then.
	TrackOnly bool `json:"trackOnly,omitempty"`
	// Tag stands in the system's log beside each refusal.
	Tag string `json:"tag"`
	// Fingerprint recognises the session's processes; the zero value puts none
	// into the profile.
	Fingerprint lifecycle.SessionFingerprint `json:"fingerprint"`
	Grants      []Grant                      `json:"grants"`
	// Protected stay as they are although a grant covers them, but for those in
	// directories that do not exist; see Scene.Unkept.
	Protected []Path `json:"protected"`
	// Sockets of outside processes may be connected to.
	Sockets []Path `json:"sockets"`
	// Closed are the sidecar's own directories: nothing in them can be seen but
	// what is granted below them.
	Closed []Path `json:"closed"`
	// Fixed are the sidecar's own files and those that decide about sessions:
	// they can be neither written nor made, whatever is granted.
	Fixed []Path `json:"fixed"`
	// Network says whether all of it is open; otherwise nothing is, localhost
	// neither.
	Network bool `json:"network"`
	// Canary is a directory that everybody may list and that the profile must
	// close; empty where the policy leaves none to try.
	Canary string `json:"canary"`
	Asked  Asked  `json:"asked"`
}

// Path is the path of a file. It travels byte for byte, whether or not it is
// text.
type Path string

// MarshalJSON keeps every byte; see UnmarshalJSON.
func (p Path) MarshalJSON() ([]byte, error) { return json.Marshal([]byte(p)) }

// UnmarshalJSON reads what MarshalJSON writes.
func (p *Path) UnmarshalJSON(data []byte) error {
	var raw []byte
	if err := json.Unmarshal(data, &raw); err != nil {
		return err
	}
	*p = Path(raw)
	return nil
}

// Grant grants access to a path and what lies below it.
type Grant struct {
	Path   Path          `json:"path"`
	Access policy.Access `json:"access"`
	// Required grants must be possible: a session without its project directory
	// is not the session that was asked for.
	Required bool `json:"required,omitempty"`
	// Private is the session's own directory, in which no outside process has a
	// socket.
	Private bool `json:"private,omitempty"`
}

// Asked are the protections that a policy may leave out.
type Asked struct {
	Network        bool `json:"network"`
	ProtectedPaths bool `json:"protectedPaths"`
	Denials        bool `json:"denials"`
}

// canaries are directories that everybody may list and that no program needs to
// list at its start.
var canaries = []string{"/Users", "/Library", "/Applications", "/private/var", "/Volumes"}

// Host is what a plan holds beside a policy.
type Host struct {
	Tag         string
	Fingerprint lifecycle.SessionFingerprint
	Closed      []string
	Fixed       []string
}

// Translate turns a policy into a plan. It is pure: whether paths exist is the
// stage's business.
func Translate(p *policy.Policy, host Host) Plan {
	plan := Plan{
		Tag: host.Tag, Fingerprint: host.Fingerprint, Closed: paths(host.Closed), Fixed: paths(host.Fixed),
		Network: p.Network.Allowed,
		Asked: Asked{
			Network: !p.Network.Allowed, ProtectedPaths: len(p.Protected) > 0, Denials: p.OnDenied != policy.Ignore,
		},
	}
	for _, rule := range p.Rules {
		if rule.Access == 0 {
			continue
		}
		own := rule.Origin.File == policy.OriginSession
		plan.Grants = append(plan.Grants, Grant{
			Path: Path(rule.Path), Access: rule.Access, Required: own, Private: own && rule.Path != p.Project,
		})
	}
	for _, protected := range p.Protected {
		if protected.Decides {
			plan.Fixed = append(plan.Fixed, Path(protected.Path))
			continue
		}
		plan.Protected = append(plan.Protected, Path(protected.Path))
	}
	for _, socket := range p.UnixSockets {
		if socket.Path != "" { // macOS has no abstract names
			plan.Sockets = append(plan.Sockets, Path(socket.Path))
		}
	}
	for _, path := range canaries {
		if _, granted := p.Find(policy.Read, path); !granted {
			plan.Canary = path
			break
		}
	}
	return plan
}

// TrackOnly is the plan that restricts nothing and only makes a session's
// processes recognisable.
func TrackOnly(fingerprint lifecycle.SessionFingerprint, tag string) Plan {
	return Plan{TrackOnly: true, Tag: tag, Fingerprint: fingerprint}
}

func paths(list []string) []Path {
	out := make([]Path, len(list))
	for i, path := range list {
		out[i] = Path(path)
	}
	return out
}
