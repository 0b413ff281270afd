package linux

import (
	"cmp"
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
)

// Keep is what the mounts of a session keep as it is.
type Keep struct {
	// Protected paths become read-only mounts of themselves.
	Protected []string
	// Pinned directories become mounts of themselves, because a directory that
	// something is mounted on cannot be renamed or removed: they lead to
	// protected paths and could be moved out of the way. Each stands behind
	// those that hold it.
	Pinned []string
}

// wireKeep is a Keep on its way to the stage; see wireRule.
type wireKeep struct {
	Protected [][]byte `json:"protected"`
	Pinned    [][]byte `json:"pinned"`
}

// MarshalJSON keeps every byte of the paths; see UnmarshalJSON.
func (k Keep) MarshalJSON() ([]byte, error) {
	return json.Marshal(wireKeep{Protected: toBytes(k.Protected), Pinned: toBytes(k.Pinned)})
}

// UnmarshalJSON reads what MarshalJSON writes.
func (k *Keep) UnmarshalJSON(data []byte) error {
	var wire wireKeep
	if err := json.Unmarshal(data, &wire); err != nil {
		return err
	}
	*k = Keep{Protected: toStrings(wire.Protected), Pinned: toStrings(wire.Pinned)}
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

// keepOf plans the mounts for a policy. A directory is pinned if the session
// could rename it: if it may write the one that holds it.
func keepOf(p *policy.Policy) Keep {
	var keep Keep
	pinned := map[string]bool{}
	for _, protected := range p.Protected {
		keep.Protected = append(keep.Protected, protected.Path)
		for dir := filepath.Dir(protected.Path); dir != "/"; dir = filepath.Dir(dir) {
			if _, movable := p.Writable(filepath.Dir(dir)); movable && !pinned[dir] {
				pinned[dir] = true
				keep.Pinned = append(keep.Pinned, dir)
			}
		}
	}
	// A path may be protected and lead to another; read-only covers both.
	keep.Pinned = slices.DeleteFunc(keep.Pinned, func(dir string) bool {
		return slices.ContainsFunc(keep.Protected, func(path string) bool { return policy.Contains(path, dir) })
	})
	slices.SortFunc(keep.Pinned, func(a, b string) int {
		return cmp.Or(cmp.Compare(strings.Count(a, "/"), strings.Count(b, "/")), strings.Compare(a, b))
	})
	slices.Sort(keep.Protected)
	keep.Protected = slices.Compact(keep.Protected)
	return keep
}

// kept is what came of a Keep.
type kept struct {
	// missing do not exist and can be created.
	missing []string
	// links are symlinks, or lie behind one: nothing can be mounted on a
	// symlink, and whoever may write its directory can replace it.
	links []string
}
