package namespace

import (
	"cmp"
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/handshake"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
)

// ProtectedMounts are the mounts by which a session cannot change protected
// paths; see docs/design/protected-mounts.md.
type ProtectedMounts struct {
	// Protected paths are mounted on themselves, read-only.
	Protected []string
	// Pinned directories lead to protected paths and are mounted on themselves:
	// a directory that something is mounted on can be neither renamed nor
	// removed. Parents come before their children.
	Pinned []string
	// Links are symlinks that are mounted on themselves: the next session goes by
	// them.
	Links []string
	// Reopened paths below protected ones are mounted back, as writable as they
	// were.
	Reopened []string
}

// wireMounts is the JSON form of ProtectedMounts.
type wireMounts struct {
	Protected []handshake.RawString `json:"protected"`
	Pinned    []handshake.RawString `json:"pinned"`
	Links     []handshake.RawString `json:"links,omitempty"`
	Reopened  []handshake.RawString `json:"reopened,omitempty"`
}

// MarshalJSON keeps every byte of the paths; see handshake.RawString.
func (m ProtectedMounts) MarshalJSON() ([]byte, error) {
	return json.Marshal(wireMounts{
		Protected: handshake.RawStrings(m.Protected), Pinned: handshake.RawStrings(m.Pinned),
		Links: handshake.RawStrings(m.Links), Reopened: handshake.RawStrings(m.Reopened),
	})
}

// UnmarshalJSON reads what MarshalJSON writes.
func (m *ProtectedMounts) UnmarshalJSON(data []byte) error {
	var wire wireMounts
	if err := json.Unmarshal(data, &wire); err != nil {
		return err
	}
	*m = ProtectedMounts{
		Protected: handshake.PlainStrings(wire.Protected), Pinned: handshake.PlainStrings(wire.Pinned),
		Links: handshake.PlainStrings(wire.Links), Reopened: handshake.PlainStrings(wire.Reopened),
	}
	return nil
}

// PlanMounts returns the mounts for a policy. A directory is pinned if the
// session may write its parent, and so could rename it. The directories above
// hidden paths are, too: a later session would see what was moved elsewhere.
func PlanMounts(p *policy.Policy) ProtectedMounts {
	var mounts ProtectedMounts
	index := policy.NewIndex(p)
	known := map[string]bool{} // with every directory above
	pinAbove := func(path string) {
		for dir := filepath.Dir(path); dir != "/" && !known[dir]; dir = filepath.Dir(dir) {
			known[dir] = true
			if index.Writable(filepath.Dir(dir)) {
				mounts.Pinned = append(mounts.Pinned, dir)
			}
		}
	}
	isProtected := map[string]bool{}
	for _, protected := range p.Protected {
		if protected.Creatable || isReplaced(p, protected.Path) {
			continue
		}
		switch {
		case protected.Link:
			mounts.Links = append(mounts.Links, protected.Path)
		case !protected.Pattern: // what exists has an entry of its own
			mounts.Protected = append(mounts.Protected, protected.Path)
			isProtected[protected.Path] = true
		}
		pinAbove(protected.Path)
	}
	for _, hidden := range p.Hidden {
		if !isReplaced(p, hidden.Path) {
			pinAbove(hidden.Path)
		}
	}
	for _, path := range p.Reopened {
		// A pattern is not reopened, nor is an entry of just the path.
		if !isReplaced(p, path) && !index.Protects(path) {
			mounts.Reopened = append(mounts.Reopened, path)
		}
	}
	// A protected path needs no pin, nor does a directory below one: a
	// read-only mount protects all of it, unless a part is mounted back.
	mounts.Pinned = slices.DeleteFunc(mounts.Pinned, func(dir string) bool {
		return hasAbove(isProtected, dir) && (len(p.Reopened) == 0 || index.Protects(dir))
	})
	slices.SortFunc(mounts.Pinned, func(a, b string) int {
		return cmp.Or(cmp.Compare(strings.Count(a, "/"), strings.Count(b, "/")), strings.Compare(a, b))
	})
	slices.Sort(mounts.Protected)
	mounts.Protected = slices.Compact(mounts.Protected)
	return mounts
}

// isReplaced reports whether another directory takes the place of the one that
// a path is in. The session then never sees what is at the path outside.
func isReplaced(p *policy.Policy, path string) bool {
	_, replaced := p.TemporaryAt(path)
	return replaced
}

// MountResult says which protected paths could not be mounted.
type MountResult struct {
	// Missing paths do not exist and can be created.
	Missing []string
	// Symlinks are symlinks, or lie behind one: nothing can be mounted on a
	// symlink, and whoever may write its directory can replace it.
	Symlinks []string
}
