package namespace

import (
	"encoding/json"
	"slices"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/handshake"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
)

// Tree makes everything read-only that is not granted for writing; see
// docs/design/file-tree.md.
type Tree struct {
	// Writable are the granted paths. None of them lies below another.
	Writable []string
}

// PlanTree returns the tree of a session that may write these paths. It returns
// nil if that is everything. The directories that Temporary replaces are not
// written; those that replace them are.
func PlanTree(writable []string, p *policy.Policy) *Tree {
	paths := slices.DeleteFunc(slices.Clone(writable), func(path string) bool {
		return slices.ContainsFunc(p.Temporary, func(t policy.Temporary) bool { return t.Path == path })
	})
	for _, t := range p.Temporary { // what Replaced puts in place has a rule
		paths = append(paths, t.Source)
	}
	slices.Sort(paths)
	tree := &Tree{}
	for _, path := range paths {
		if path == "/" {
			return nil
		}
		// A parent comes before its children, but perhaps not directly: "/a",
		// "/a.b", "/a/c".
		if !slices.ContainsFunc(tree.Writable, func(dir string) bool { return policy.Contains(dir, path) }) {
			tree.Writable = append(tree.Writable, path)
		}
	}
	return tree
}

// wireTree is the JSON form of Tree.
type wireTree struct {
	Writable []handshake.RawString `json:"writable"`
}

// MarshalJSON keeps every byte of the paths; see handshake.RawString.
func (t Tree) MarshalJSON() ([]byte, error) {
	return json.Marshal(wireTree{Writable: handshake.RawStrings(t.Writable)})
}

// UnmarshalJSON reads what MarshalJSON writes.
func (t *Tree) UnmarshalJSON(data []byte) error {
	var wire wireTree
	if err := json.Unmarshal(data, &wire); err != nil {
		return err
	}
	*t = Tree{Writable: handshake.PlainStrings(wire.Writable)}
	return nil
}
