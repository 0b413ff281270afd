//go:build unix

package lifecycle

import (
	"context"
	"errors"
	"path/filepath"

	"github.com/sandbox-sidecar/sandbox-sidecar/lifecycle/journal"
)

// kindDirectory is the kind of a group's private directories. The key is the
// path.
const kindDirectory = "directory"

// directoryEnder removes the directories of a dead sidecar's groups. It removes
// only clean paths directly below the state directory, where nobody else
// writes. A directory that remains is better than a lost one of the user's.
var directoryEnder = journal.Ender{Kind: kindDirectory, End: removeDirectories}

func removeDirectories(ctx context.Context, records []journal.Record, where journal.Place) (int, error) {
	var failures []error
	for _, r := range records {
		if filepath.IsAbs(where.StateDir) && filepath.Dir(r.Key) == where.StateDir && filepath.Clean(r.Key) == r.Key {
			failures = append(failures, removeTree(ctx, r.Key))
		}
	}
	return 0, errors.Join(failures...)
}

// RemoveTree removes a directory that a session could write, with everything in
// it; see removeTree.
func RemoveTree(ctx context.Context, dir string) error { return removeTree(ctx, dir) }
