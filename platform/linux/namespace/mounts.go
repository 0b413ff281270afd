package namespace

import (
	"cmp"
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
)

// ProtectedMounts is what the mounts of a session keep as it is.
type ProtectedMounts struct {
	// Protected paths become read-only mounts of themselves.
	Protected []string
	// Pinned directories become mounts of themselves, because a directory that
	// something is mounted on cannot be renamed or removed: they lead to
	// protected paths and could be moved out of the way. Each stands behind
	// those that hold it.
	Pinned []string
}

// wireMounts is a ProtectedMounts on its way to the stage; see wireRule.
type wireMounts struct {
	Protected [][]byte `json:"protected"`
	Pinned    [][]byte `json:"pinned"`
}

// MarshalJSON keeps every byte of the paths; see UnmarshalJSON.
func (m ProtectedMounts) MarshalJSON() ([]byte, error) {
	return json.Marshal(wireMounts{Protected: toBytes(m.Protected), Pinned: toBytes(m.Pinned)})
}

// UnmarshalJSON reads what MarshalJSON writes.
func (m *ProtectedMounts) UnmarshalJSON(data []byte) error {
	var wire wireMounts
	if err := json.Unmarshal(data, &wire); err != nil {
		return err
	}
	*m = ProtectedMounts{Protected: toStrings(wire.Protected), Pinned: toStrings(wire.Pinned)}
	return nil
}

func toBytes(list []string) [][]byte {
	var out [][]byte
	for _, s := range list {
		out = append(out, []byte(s))
	}
	return out
}

func toStrings(list [][]byte) []string {
	var out []string
	for _, b := range list {
		out = append(out, string(b))
	}
	return out
}

// PlanMounts plans the mounts for a policy. A directory is pinned if the session
// could rename it: if it may write the one that holds it.
func PlanMounts(p *policy.Policy) ProtectedMounts {
	var mounts ProtectedMounts
	pinned := map[string]bool{}
	for _, protected := range p.Protected {
		mounts.Protected = append(mounts.Protected, protected.Path)
		for dir := filepath.Dir(protected.Path); dir != "/"; dir = filepath.Dir(dir) {
			if _, movable := p.Writable(filepath.Dir(dir)); movable && !pinned[dir] {
				pinned[dir] = true
				mounts.Pinned = append(mounts.Pinned, dir)
			}
		}
	}
	// A path may be protected and lead to another; read-only covers both.
	mounts.Pinned = slices.DeleteFunc(mounts.Pinned, func(dir string) bool {
		return slices.ContainsFunc(mounts.Protected, func(path string) bool { return policy.Contains(path, dir) })
	})
	slices.SortFunc(mounts.Pinned, func(a, b string) int {
		return cmp.Or(cmp.Compare(strings.Count(a, "/"), strings.Count(b, "/")), strings.Compare(a, b))
	})
	slices.Sort(mounts.Protected)
	mounts.Protected = slices.Compact(mounts.Protected)
	return mounts
}

// MountResult says which protected paths could not be mounted.
type MountResult struct {
	// Missing paths do not exist and can be created.
	Missing []string
	// Symlinks are symlinks, or lie behind one: nothing can be mounted on a
	// symlink, and whoever may write its directory can replace it.
	Symlinks []string
}
