package policy

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
)

// Policy is what one session may do. The zero value restricts nothing; see
// Restricted.
type Policy struct {
	// Restricted is false where the settings do not sandbox this kind of
	// session; every other field but TrackBySandbox is then without meaning.
	Restricted bool `json:"restricted"`
	// TrackBySandbox puts processes that are not restricted into a sandbox that
	// refuses nothing, so that they can be recognised by it (macOS).
	TrackBySandbox bool `json:"trackBySandbox,omitempty"`
	// Project is the real path of the project directory.
	Project string `json:"project"`
	// Rules grant paths; what no rule covers is refused. Sorted by path, one
	// rule a path.
	Rules []Rule `json:"rules"`
	// PrivateRuntimeDir asks for a runtime directory of the session's own,
	// granted read-write and named by XDG_RUNTIME_DIR.
	PrivateRuntimeDir bool `json:"privateRuntimeDir"`
	// PrivateTerminals asks for a /dev/pts of the session's own, granted
	// read-write: the session's terminal and those that it opens are there, and
	// nobody else's.
	PrivateTerminals bool `json:"privateTerminals"`
	// Network says whether the session may reach the network.
	Network Network `json:"network"`
	// UnixSockets are the sockets of outside processes that the session may
	// connect to.
	UnixSockets []UnixSocket `json:"unixSockets"`
	// Environment says which variables arrive.
	Environment Environment `json:"environment"`
	// Protected are paths that stay read-only although a rule grants writing at
	// or above them.
	Protected []Protected `json:"protected"`
	// RequireProtected is true where a session must not start on a machine that
	// cannot keep Protected as it is.
	RequireProtected bool `json:"requireProtected"`
	// OnUnavailable says what happens where the machine cannot enforce the
	// policy.
	OnUnavailable OnUnavailable `json:"onUnavailable"`
	// OnDenied says what a denial does besides failing.
	OnDenied OnDenied `json:"onDenied"`
}

// Rule grants Access to Path and, where it is a directory, to everything below
// it.
type Rule struct {
	// Path is absolute and clean, and free of symlinks as far as it existed
	// when the policy was compiled.
	Path   string `json:"path"`
	Access Access `json:"access"`
	// Guarded is the part of Access that holds only where the machine can keep
	// Protected as it is.
	Guarded Access `json:"guarded,omitempty"`
	Origin  Origin `json:"origin"`
}

// Network is the network part of a policy.
type Network struct {
	Allowed bool   `json:"allowed"`
	Origin  Origin `json:"origin"`
}

// UnixSocket is one socket of an outside process: either a Path or an Abstract
// name is set.
type UnixSocket struct {
	Path     string `json:"path,omitempty"`
	Abstract string `json:"abstract,omitempty"`
	Origin   Origin `json:"origin"`
}

// Protected is one path that must stay as it is: inside the project, or a
// settings file inside another grant. It need not exist.
type Protected struct {
	Path   string `json:"path"`
	Origin Origin `json:"origin"`
	// Decides is true of a file that decides about sessions. Where a system can
	// keep it from being made, it does so however much of the way to it is
	// missing; the way to any other protected path may be made, or git could
	// make no repository.
	Decides bool `json:"decides,omitempty"`
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

// OnDenied is the reaction to a refused access.
type OnDenied string

const (
	// Report tells the editor.
	Report OnDenied = "report"
	// Ask lets the editor's user decide.
	Ask OnDenied = "ask"
	// Ignore does nothing.
	Ignore OnDenied = "ignore"
)

// ID identifies the policy's effect: two policies have the same ID exactly when
// they enforce the same. Origins do not count.
func (p *Policy) ID() string {
	effect := *p
	if !p.Restricted {
		effect = Policy{TrackBySandbox: p.TrackBySandbox}
	}
	effect.Rules = slices.Clone(effect.Rules)
	for i := range effect.Rules {
		effect.Rules[i].Origin = Origin{}
	}
	effect.UnixSockets = slices.Clone(effect.UnixSockets)
	for i := range effect.UnixSockets {
		effect.UnixSockets[i].Origin = Origin{}
	}
	effect.Protected = slices.Clone(effect.Protected)
	for i := range effect.Protected {
		effect.Protected[i].Origin = Origin{}
	}
	effect.Network.Origin = Origin{}
	effect.Environment.Origin = Origin{}
	// Marshalling plain data cannot fail; the order of fields and of the sorted
	// slices makes it canonical.
	data, err := json.Marshal(effect)
	if err != nil {
		panic(fmt.Sprintf("BUG(sandbox-sidecar): marshal policy: %v", err))
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:16])
}

// Find returns the rule that grants access to path, and whether there is one.
// Where several do, it is the most specific. The path must be absolute and
// clean; symlinks are the caller's business.
func (p *Policy) Find(access Access, path string) (Rule, bool) {
	var best Rule
	var have Access
	for _, rule := range p.Rules {
		if !Contains(rule.Path, path) {
			continue
		}
		// Grants add up along a path, so a rule may contribute only part of
		// what was asked.
		have |= rule.Access
		if rule.Access&access != 0 && len(rule.Path) >= len(best.Path) {
			best = rule
		}
	}
	return best, have.Has(access)
}

// Writable returns a rule that lets the session write path, and whether there
// is one.
func (p *Policy) Writable(path string) (Rule, bool) { return p.Find(Write, path) }

// Contains reports whether path is dir or lies below it. Both are absolute and
// clean.
func Contains(dir, path string) bool {
	if dir == path || dir == "/" {
		return true
	}
	return strings.HasPrefix(path, dir) && path[len(dir)] == filepath.Separator
}
