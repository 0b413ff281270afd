package settings

import (
	"path/filepath"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
)

// cover maps paths to the access that is granted there and below. A lookup
// climbs from the path to the root, so that ten thousand grants take ten
// thousand short climbs instead of a hundred million comparisons.
type cover map[string]policy.Access

func (c cover) add(path string, access policy.Access) { c[path] |= access }

// at is all access to the path: grants on the way to it add up.
func (c cover) at(path string) policy.Access {
	var access policy.Access
	for p := range upwards(path) {
		access |= c[p]
	}
	return access
}

// upwards yields the path and its parents up to the root.
func upwards(path string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for {
			parent := filepath.Dir(path)
			if !yield(path) || path == parent {
				return
			}
			path = parent
		}
	}
}
