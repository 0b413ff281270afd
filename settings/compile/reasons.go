package compile

import (
	"slices"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/hosts"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/document"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/resolve"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/sensitive"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/toolchain"
)

// Reasons say what the policy of one kind of session was made of, to those who
// explain it. They look up paths through a view of their own; each caller gets
// others. The evaluation owns what they return.
type Reasons struct {
	*resolve.View
	// Policy is what a session of the kind may do.
	Policy policy.Policy
	// Host is the machine as the settings see it.
	Host resolve.Host
	// Doubt is why it is unclear what the settings ask for; nil if it is clear.
	Doubt *Doubt

	from   *evaluation
	actors func() *sensitive.Paths
}

// Reasons returns those of the kept evaluation.
func (s *Snapshot) Reasons(kind document.Kind) *Reasons {
	kept := s.evaluation(kind)
	e := *kept
	e.View = resolve.NewView(s.FS)
	return &Reasons{
		View: e.View, Policy: s.policyFor(kept, kind), Host: e.host, Doubt: s.doubt(kept, kind), from: &e,
		actors: func() *sensitive.Paths { return s.actors.at(e.View, e.sensitive) },
	}
}

// WithoutProject are the reasons without the project's file; nil if there is no
// project.
func (r *Reasons) WithoutProject() *Reasons {
	if r.from.alone == nil {
		return nil
	}
	return &Reasons{View: r.View, Policy: r.from.alone.policy, Host: r.Host, from: r.from.alone, actors: r.actors}
}

// Settings are the values that hold, defaults included.
func (r *Reasons) Settings() document.Sandbox { return r.from.merged }

// ProjectFile is the project's settings file if it counts; else "".
func (r *Reasons) ProjectFile() string { return r.from.projectFile }

// Trusted reports whether the project's file counts as it is written.
func (r *Reasons) Trusted() bool { return r.from.trusted }

// WrittenKey is Snapshot.KeyFor.
func (r *Reasons) WrittenKey(key string) string { return r.from.writtenKey(key) }

// OriginOf is the origin of the value of a key as a whole.
func (r *Reasons) OriginOf(key string) policy.Origin { return r.from.originOf(key) }

// SetBy is the origin of the value of a key in the files that count as they are
// written. An organisation's requirement is none of them.
func (r *Reasons) SetBy(key string) policy.Origin { return r.from.user.originOf(key) }

// InProject expresses a clean path below the project by the project's real
// path; "" if it is not below it.
func (r *Reasons) InProject(path string) string {
	inside, _ := project{dir: r.from.projectDir, path: r.Policy.Project}.inside(path)
	return inside
}

// Makes reports whether a directory is made before a session starts.
func (r *Reasons) Makes(path string) bool { return slices.Contains(r.from.create, path) }

// MakesBelow reports whether a path, or a directory below it, is made before a
// session starts.
func (r *Reasons) MakesBelow(path string) bool {
	return slices.ContainsFunc(r.from.create, func(dir string) bool { return policy.Contains(path, dir) })
}

// Guards reports whether no session may write a path, whatever is granted.
func (r *Reasons) Guards(path string) bool {
	within := func(p ownPlace) bool {
		reopened := func(open string) bool { return policy.Contains(open, path) }
		return policy.Contains(p.path, path) && !slices.ContainsFunc(p.open, reopened)
	}
	return slices.Contains(r.from.guarded, path) || slices.ContainsFunc(r.from.own, within)
}

// ProtectedUngranted is an entry of protected_paths that covers a real path outside
// of the project that no grant for writing holds.
func (r *Reasons) ProtectedUngranted(path string) (p policy.Protected, is bool) {
	i := slices.IndexFunc(r.from.ungranted, func(p policy.Protected) bool { return p.Covers(path) })
	if i < 0 {
		return p, false
	}
	return r.from.ungranted[i], true
}

// Undoes says why a grant for writing of a path would undo the sandbox; "" if it
// would not.
func (r *Reasons) Undoes(path string) string { return r.from.undoes(path) }

// Unmoved says why a directory does not count that a variable of a toolchain names,
// if a real path is in it, or is missing together with it; else it is "".
func (r *Reasons) Unmoved(path string, exists bool) string {
	return r.from.moving.unmoved(path, exists)
}

// Enfolds says what a grant for writing of a path would also open, of the files
// that decide about sessions; "" if nothing.
func (r *Reasons) Enfolds(path string) string { return r.from.enfolds(path) }

// Secrets are the places of keys and passwords.
func (r *Reasons) Secrets() *sensitive.Paths { return r.from.sensitive }

// Actors are the places that programs outside act on, as they were at most two
// seconds ago.
func (r *Reasons) Actors() *sensitive.Paths { return r.actors() }

// HasToolchain reports whether sessions have the toolchain of that name.
func (r *Reasons) HasToolchain(name string) bool { return hasToolchain(r.from.toolchains, name) }

// PlacesOf are the paths that a place of a toolchain stands for on this machine.
func (r *Reasons) PlacesOf(t toolchain.Toolchain, place toolchain.Place) []string {
	return r.from.placePaths(chosen{Toolchain: t}, place, &reporter{})
}

// AgentSocket is where an agent's socket is, or is to be; "" if nobody knows.
func (r *Reasons) AgentSocket(agent policy.Agent) string {
	path, _ := r.from.agentSocket(agent)
	return path
}

// MayAddSSH reports whether the set "ssh" lets sessions use keys through an agent:
// the organisation leaves it its effect.
func (r *Reasons) MayAddSSH() bool {
	forbids := func(bound settings) bool {
		return bound.sets(socketsKey) ||
			bound.sets(toolchainsKey) && !slices.Contains(bound.values.Toolchains, toolchain.SSH)
	}
	return len(r.from.policy.SigningKeys) > 0 && !slices.ContainsFunc(r.from.layers.bounds, forbids)
}

// AllowedHost finds the entry that allows a host.
func (r *Reasons) AllowedHost(to hosts.Target) (origin policy.Origin, found bool) {
	return findHost(r.from.hosts.allowed, to)
}

// DeniedHost finds the entry that denies a host.
func (r *Reasons) DeniedHost(to hosts.Target) (origin policy.Origin, found bool) {
	return findHost(r.from.hosts.denied, to)
}

func findHost(list []host, to hosts.Target) (origin policy.Origin, found bool) {
	i, found := hosts.Find(patternsOfHosts(list), to)
	if !found {
		return policy.Origin{}, false
	}
	return list[i].origin, true
}

// Reaches reports whether sessions may connect to all that a pattern matches.
func (r *Reasons) Reaches(pattern hosts.Pattern) bool { return r.from.reaches()(pattern) }

// ForbidsPath is the origin of what forbids an access to a path although the user
// may grant it: a requirement of the organisation, or of a file that can only
// tighten. It is nil if nothing does, as for the three below.
func (r *Reasons) ForbidsPath(access policy.Access, path string) *policy.Origin {
	return r.from.bounds.refuses(access, path)
}

// ForbidsSockets is ForbidsPath for Unix sockets.
func (r *Reasons) ForbidsSockets() *policy.Origin { return r.from.bounds.sockets }

// ForbidsKeys is ForbidsPath for the keys of agents.
func (r *Reasons) ForbidsKeys() *policy.Origin { return r.from.bounds.keys }

// ForbidsNetwork is ForbidsPath for the network.
func (r *Reasons) ForbidsNetwork() *policy.Origin { return r.from.bounds.network }
