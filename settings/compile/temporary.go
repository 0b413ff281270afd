package compile

import (
	"cmp"
	"slices"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
)

// temporaryPaths are the directories that all programs share for temporary
// files.
var temporaryPaths = map[string][]string{
	"linux": {"/tmp", "/var/tmp", "/dev/shm"},
	// Sessions have them in common with other programs, and TMPDIR besides.
	"darwin": {"/private/tmp", "/private/var/tmp"},
}

// temporaryOf lists the directories of temporary files that are the project's
// own: each one of which anything is granted. One that another key than
// system_paths.read_write lets sessions write is meant to be shared, or one in a
// directory that such a key lets them write. forced: only the session itself may
// share one.
func temporaryOf(view fsView, granted []grant, forced bool) []policy.Temporary {
	list := []policy.Temporary{}
	for _, path := range temporaryPaths[view.host.Platform] {
		target := view.Resolve(path)
		var from *policy.Origin
		meant := false
		for _, g := range granted {
			if !policy.Contains(g.path, target.Path) {
				continue
			}
			ofSystem := g.origin.Key == "system_paths.read_write"
			onPurpose := !ofSystem && g.access.Has(policy.Write)
			meant = meant || onPurpose && (!forced || g.origin.File == policy.OriginSession)
			if from == nil || ofSystem && g.path == target.Path {
				from = &g.origin
			}
		}
		known := slices.ContainsFunc(list, func(t policy.Temporary) bool { return t.Path == target.Path })
		if target.Err == nil && target.Exists && target.Mode.IsDir() && from != nil && !meant && !known {
			list = append(list, policy.Temporary{Path: target.Path, Origin: *from})
		}
	}
	slices.SortFunc(list, func(a, b policy.Temporary) int { return cmp.Compare(a.Path, b.Path) })
	return list
}

// keepTemporary gives the project a directory of temporary files of its own
// wherever a rule for a directory above would show that of other programs.
func (b bounding) keepTemporary() {
	for _, path := range temporaryPaths[b.fsView.host.Platform] {
		target := b.view.Resolve(path)
		own := policy.Contains(b.project.path, target.Path) && b.project.path != ""
		known := slices.ContainsFunc(b.policy.Temporary, func(t policy.Temporary) bool { return t.Path == target.Path })
		isDir := target.Err == nil && target.Exists && target.Mode.IsDir()
		if isDir && !own && !known && b.policy.At(target.Path) != 0 {
			from := b.bounds.from[temporaryKey]
			added := policy.Temporary{Path: target.Path, Origin: from.policy(temporaryKey, from.At)}
			b.policy.Temporary = append(b.policy.Temporary, added)
		}
	}
	slices.SortFunc(b.policy.Temporary, func(x, y policy.Temporary) int { return cmp.Compare(x.Path, y.Path) })
}
