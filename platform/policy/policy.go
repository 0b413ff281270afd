package policy

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
)

// Policy is what one session may do. The zero value restricts nothing; see
// Restricted.
type Policy struct {
	// Restricted is false if the settings do not sandbox this kind of session.
	// Then only TrackBySandbox counts.
	Restricted bool `json:"restricted"`
	// TrackBySandbox puts unrestricted processes into a sandbox that denies
	// nothing, so that they can be recognised by it (macOS).
	TrackBySandbox bool `json:"trackBySandbox,omitempty"`
	// Project is the real path of the project directory.
	Project string `json:"project"`
	// Rules grant paths; everything else is denied. They are sorted by path,
	// with one rule a path.
	Rules []Rule `json:"rules"`
	// Roots are grants outside of Project in which programs outside act on what
	// the session writes.
	Roots []Root `json:"roots,omitempty"`
	// PrivateRuntimeDir asks for a private runtime directory, granted
	// read-write and named by XDG_RUNTIME_DIR.
	PrivateRuntimeDir bool `json:"privateRuntimeDir"`
	// PrivateTerminals asks for a private /dev/pts, granted read-write. It
	// holds only the session's terminals.
	PrivateTerminals bool `json:"privateTerminals"`
	// Caches are granted directories whose changes only sessions see. They are
	// sorted by path.
	Caches []Cache `json:"caches"`
	// Temporary are directories of temporary files of the project's own. They
	// are sorted by path.
	Temporary []Temporary `json:"temporary"`
	// Replaced are files and directories that have something else in their place
	// inside, if they exist and there are namespaces.
	Replaced []Replaced `json:"replaced,omitempty"`
	// Copies are files of which the session reads a part. They are sorted by path.
	Copies []Copy `json:"copies,omitempty"`
	// Hidden are paths that the session must not see, even if a rule grants
	// them. They are sorted by path.
	Hidden []Hidden `json:"hidden"`
	// Network says whether the session may reach the network.
	Network Network `json:"network"`
	// UnixSockets are the sockets of outside processes that the session may
	// connect to.
	UnixSockets []UnixSocket `json:"unixSockets"`
	// SigningKeys are the keys of agents that the session may use, where it has
	// only a part of an agent.
	SigningKeys []SigningKey `json:"signingKeys,omitempty"`
	// Credentials are secrets that the session uses without having them. They are
	// sorted by name.
	Credentials []Credential `json:"credentials,omitempty"`
	// Environment says which variables the session gets.
	Environment Environment `json:"environment"`
	// Protected are paths that stay read-only, even if a rule grants writing.
	Protected []Protected `json:"protected"`
	// GitDirs are the directories of git repositories in which git outside would
	// follow what a session makes beside files and directories, such as symlinks.
	// They need not exist. They are sorted, and none contains another.
	GitDirs []string `json:"gitDirs,omitempty"`
	// Reopened are paths below entries of Protected that the rules decide about
	// all the same, with everything below them. They are no patterns. An entry at
	// or below such a path protects there.
	Reopened []string `json:"reopened,omitempty"`
	// Reviewed are files that programs outside run because configuration names
	// them, with a clause that says who does. They are only reviewed, and are no
	// part of what the policy enforces.
	Reviewed map[string]string `json:"-"`
	// Unlinked are directories that git takes for repositories of their own as soon
	// as they are some. They are only reviewed.
	Unlinked []string `json:"-"`
	// Present are the paths of Rules and UnixSockets that were there when the policy
	// was compiled. It is no part of what the policy enforces.
	Present map[string]bool `json:"-"`
	// RequireProtected is true if the session must not start on a machine that
	// cannot prevent changes of Protected.
	RequireProtected bool `json:"requireProtected"`
	// OnUnavailable says what happens if the machine cannot enforce the policy.
	OnUnavailable OnUnavailable `json:"onUnavailable"`
	// OnDenied says what happens after a denial.
	OnDenied OnDenied `json:"onDenied"`
	// Limits bound what the session takes of the machine.
	Limits Limits `json:"limits"`
	// Audit says where the sidecar notes what the session does. It is no part of
	// what the policy enforces.
	Audit Audit `json:"audit,omitzero"`
}

// Audit says where an audit trail is kept. The zero value keeps none.
type Audit struct {
	// Dir is the directory of its files; "" for none.
	Dir string `json:"dir,omitempty"`
	// Journal is true for the journal of systemd.
	Journal bool `json:"journal,omitempty"`
	// Required is true if no session may start that cannot be noted.
	Required bool `json:"required,omitempty"`
	// Managed is true if the organisation's settings ask for it.
	Managed bool `json:"managed,omitempty"`
	// ProgramOnly is true if no arguments are kept.
	ProgramOnly bool `json:"programOnly,omitempty"`
}

// On reports whether a trail is kept.
func (a Audit) On() bool { return a.Dir != "" || a.Journal }

// With is what both ask for.
func (a Audit) With(other Audit) Audit {
	return Audit{
		Dir: cmp.Or(a.Dir, other.Dir), Journal: a.Journal || other.Journal, Required: a.Required || other.Required,
		Managed: a.Managed || other.Managed, ProgramOnly: a.ProgramOnly || other.ProgramOnly,
	}
}

// Limits bound what a session takes of the machine.
type Limits struct {
	// Processes is how many processes and threads the session has at most; 0 if
	// there is no limit.
	Processes int    `json:"processes,omitempty"`
	Origin    Origin `json:"origin"`
	// Memory is how much memory the session has at most.
	Memory Memory `json:"memory,omitzero"`
	// CPUWeight is its share of a busy processor, in the unit of cpu.weight
	// (cgroup v2); 0 leaves it as it is.
	CPUWeight int `json:"cpuWeight,omitempty"`
	// Connections is how many connections to hosts it has at a time; 0 if only
	// the sidecar's own limit counts.
	Connections int `json:"connections,omitempty"`
}

// Memory is an amount of memory: the lower one, if it has both fields. The zero
// value is no limit.
type Memory struct {
	Bytes int64 `json:"bytes,omitempty"`
	// Percent is a part of the machine's memory.
	Percent int `json:"percent,omitempty"`
}

// Of returns the amount in bytes on a machine with so much memory; 0 if there is
// no limit.
func (m Memory) Of(machine int64) int64 {
	most := m.Bytes
	if part := machine / 100 * int64(m.Percent); part > 0 && (most == 0 || part < most) {
		most = part
	}
	return most
}

// Lower is an amount that exceeds neither of two on any machine.
func (m Memory) Lower(other Memory) Memory {
	return Memory{Bytes: lower(m.Bytes, other.Bytes), Percent: lower(m.Percent, other.Percent)}
}

// lower is the lower of two limits, of which 0 is none.
func lower[N int | int64](a, b N) N {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}

// Rule grants Access to Path and, if it is a directory, to everything below it.
type Rule struct {
	// Path is absolute and clean. As far as it existed when the policy was
	// compiled, it contains no symlinks.
	Path   string `json:"path"`
	Access Access `json:"access"`
	// Guarded is the part of Access that is granted only if the machine can
	// prevent changes of Protected.
	Guarded Access `json:"guarded,omitempty"`
	Origin  Origin `json:"origin"`
}

// Root is a path outside of the project that the session may write: a directory
// with names that programs outside act on, as in the project, or a path that they
// act on as a whole.
type Root struct {
	Path string `json:"path"`
	// Acts is a clause that says who acts on all of it; "" if nobody does.
	Acts string `json:"acts,omitempty"`
}

// Cache is a directory of a toolchain. What a session writes there is kept for
// the user's sandboxed sessions, and no program outside sees it.
type Cache struct {
	// Path is the real path of the directory.
	Path string `json:"path"`
	// Empty is true if sessions must not see what programs outside have written
	// there.
	Empty bool `json:"empty,omitempty"`
	// Always is true if sessions must not write it where it cannot be private.
	Always bool   `json:"always,omitempty"`
	Origin Origin `json:"origin"`
}

// CacheAt returns the cache that contains path, if any. The path must be
// absolute and clean.
func (p *Policy) CacheAt(path string) (Cache, bool) {
	for _, cache := range p.Caches {
		if Contains(cache.Path, path) {
			return cache, true
		}
	}
	return Cache{}, false
}

// Network is the network part of a policy.
type Network struct {
	Allowed bool   `json:"allowed"`
	Origin  Origin `json:"origin"`
	// AllowedHosts may be reached although Allowed is false, except DeniedHosts.
	AllowedHosts []Host `json:"allowedHosts,omitempty"`
	DeniedHosts  []Host `json:"deniedHosts,omitempty"`
	// Localhost says which services of this machine may be reached if Allowed is
	// true.
	Localhost Localhost `json:"localhost,omitempty"`
	// LocalhostOf is the directory that LocalhostOwn is about: sessions of all
	// projects that have the same reach each other's services.
	LocalhostOf string `json:"localhostOf,omitempty"`
	// LocalHosts are services of this machine that may be reached beside them,
	// each as localhost with a port.
	LocalHosts []Host `json:"localHosts,omitempty"`
}

// Localhost says which services of this machine a session with the network may
// connect to, by TCP.
type Localhost string

const (
	// LocalhostAll are those of all programs.
	LocalhostAll Localhost = ""
	// LocalhostOwn are those of sessions of the same project or git working tree,
	// and the machine's DNS server.
	LocalhostOwn Localhost = "own"
	// LocalhostNone are none.
	LocalhostNone Localhost = "none"
)

// Host is an entry of a list of hosts, in the form of package hosts.
type Host struct {
	Pattern string `json:"pattern"`
	Origin  Origin `json:"origin"`
}

// ByHost reports whether some hosts may be reached, and no others.
func (n Network) ByHost() bool { return !n.Allowed && len(n.AllowedHosts) > 0 }

// UnixSocket is one socket of an outside process. Either Path or Abstract is
// set.
type UnixSocket struct {
	Path     string `json:"path,omitempty"`
	Abstract string `json:"abstract,omitempty"`
	// Agent is the kind of agent behind the socket if the session is to have only
	// a part of it; "": all of what is there.
	Agent Agent `json:"agent,omitempty"`
	// InPlace: the filter has to be at Path, because a program finds the path
	// where no variable counts.
	InPlace bool   `json:"inPlace,omitempty"`
	Origin  Origin `json:"origin"`
}

// Agent is a daemon that keeps keys, of which sessions have what a filter lets
// pass.
type Agent string

const (
	// SSHAgent keeps keys of ssh.
	SSHAgent Agent = "ssh-agent"
	// GPGAgent keeps keys of GnuPG.
	GPGAgent Agent = "gpg-agent"
)

// Protected is one protected path: inside the project, or a settings file
// inside another grant. It need not exist.
type Protected struct {
	Path   string `json:"path"`
	Origin Origin `json:"origin"`
	// Decides is true for a file that decides about sessions. If the system can
	// prevent its creation, it does, even if directories on the way to it are
	// missing. The way to any other protected path may be created, or git could
	// create no repository.
	Decides bool `json:"decides,omitempty"`
	// Busy is true for a directory in which programs outside change files while
	// sessions run, as editors do. Nobody can tell their changes from a session's,
	// so they are reviewed only if a session could make some.
	Busy bool `json:"busy,omitempty"`
	// Link is true for a symlink on the way to a path that has an entry of its own.
	// Nothing replaces it.
	Link bool `json:"link,omitempty"`
	// Pattern is true if the last name of Path may contain *, which stands for
	// any characters. Such an entry is about names that do not exist yet; those
	// that exist have entries of their own. If ** is the name before the last,
	// the last may be anywhere below the directory before that; see Anywhere.
	Pattern bool `json:"pattern,omitempty"`
	// GitConfig is true for the configuration of a git repository. If the system
	// can tell what a change of git's means, harmless ones are accepted.
	GitConfig bool `json:"gitConfig,omitempty"`
	// Creatable is true for a path of a git repository that does not exist yet:
	// git creates it with the repository. Its creation is reported and not
	// refused.
	Creatable bool `json:"creatable,omitempty"`
}

// Covers reports whether a clean path is the protected path or lies below it.
func (p Protected) Covers(path string) bool {
	return p.covers(path)
}

// OnUnavailable is the reaction to a machine that cannot enforce a policy.
type OnUnavailable string

const (
	// Refuse starts nothing.
	Refuse OnUnavailable = "refuse"
	// Warn starts the session unconfined and says so in the reply and in the
	// terminal.
	Warn OnUnavailable = "warn"
)

// OnDenied is the reaction to a denial.
type OnDenied string

const (
	// Report notifies the editor.
	Report OnDenied = "report"
	// Ask lets the user decide in the editor.
	Ask OnDenied = "ask"
	// Ignore does nothing.
	Ignore OnDenied = "ignore"
)

// ID identifies the policy's effect: two policies have the same ID exactly if
// they enforce the same. Origins do not count.
func (p *Policy) ID() string {
	effect := *p
	if !p.Restricted {
		effect = Policy{TrackBySandbox: p.TrackBySandbox}
	}
	effect.Rules = withoutOrigins(effect.Rules, func(r *Rule) *Origin { return &r.Origin })
	effect.UnixSockets = withoutOrigins(effect.UnixSockets, func(u *UnixSocket) *Origin { return &u.Origin })
	effect.SigningKeys = withoutOrigins(effect.SigningKeys, func(k *SigningKey) *Origin { return &k.Origin })
	effect.Credentials = withoutOrigins(effect.Credentials, func(c *Credential) *Origin { return &c.Origin })
	effect.Protected = withoutOrigins(effect.Protected, func(p *Protected) *Origin { return &p.Origin })
	effect.Caches = withoutOrigins(effect.Caches, func(c *Cache) *Origin { return &c.Origin })
	effect.Temporary = withoutOrigins(effect.Temporary, func(t *Temporary) *Origin { return &t.Origin })
	effect.Copies = withoutOrigins(effect.Copies, func(c *Copy) *Origin { return &c.Origin })
	effect.Hidden = withoutOrigins(effect.Hidden, func(h *Hidden) *Origin { return &h.Origin })
	effect.Network.Origin = Origin{}
	origin := func(h *Host) *Origin { return &h.Origin }
	effect.Network.AllowedHosts = withoutOrigins(effect.Network.AllowedHosts, origin)
	effect.Network.DeniedHosts = withoutOrigins(effect.Network.DeniedHosts, origin)
	effect.Network.LocalHosts = withoutOrigins(effect.Network.LocalHosts, origin)
	if !effect.Network.ByHost() {
		effect.Network.AllowedHosts, effect.Network.DeniedHosts = nil, nil
	}
	effect.Environment.Origin = Origin{}
	effect.Audit = Audit{}
	// Marshalling plain data cannot fail. The fields' order and the sorted
	// slices make it canonical.
	data, err := json.Marshal(effect)
	if err != nil {
		panic(fmt.Sprintf("BUG(sandbox-sidecar): marshal policy: %v", err))
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:16])
}

func withoutOrigins[T any](list []T, origin func(*T) *Origin) []T {
	list = slices.Clone(list)
	for i := range list {
		*origin(&list[i]) = Origin{}
	}
	return list
}

// Find returns the most specific rule that grants access to path, if any. The
// path must be absolute and clean; the caller resolves symlinks. Hidden does
// not count; see HiddenAt.
func (p *Policy) Find(access Access, path string) (Rule, bool) {
	var best Rule
	var have Access
	for _, rule := range p.Rules {
		given := p.Given(rule, path)
		if given == 0 {
			continue
		}
		// Grants add up along a path, so a rule may contribute only a part of
		// the access.
		have |= given
		if given&access != 0 && len(rule.Path) >= len(best.Path) {
			best = rule
		}
	}
	return best, have.Has(access)
}

// Writable returns a rule that lets the session write path, if any.
func (p *Policy) Writable(path string) (Rule, bool) { return p.Find(Write, path) }
