//go:build unix

package lifecycle

import (
	"context"
	"errors"
	"path/filepath"
	"time"

	"github.com/sandbox-sidecar/sandbox-sidecar/fsguard"
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
			failures = append(failures, removeGuarded(ctx, r.Key))
		}
	}
	return 0, errors.Join(failures...)
}

// removeGuarded is removeTree. On a file system that may not answer, the helper
// does that, a second at a time: no thread of this process waits.
func removeGuarded(ctx context.Context, dir string) error {
	if fsguard.Local(dir) {
		return removeTree(ctx, dir)
	}
	for ctx.Err() == nil {
		left, err := removeByHelper(dir, nil)
		if err != nil || len(left) == 0 {
			return err
		}
	}
	return ctx.Err()
}

// removeAtATime is how long the helper removes before it answers. It is less than
// a file system has for an answer.
const removeAtATime = time.Second

// removeByHelper answers with a byte if something is left.
var removeByHelper = fsguard.Define("remove tree", func(path string, _ []byte) ([]byte, error) {
	ctx, cancel := context.WithTimeout(context.Background(), removeAtATime)
	defer cancel()
	err := removeTree(ctx, path)
	if errors.Is(err, context.DeadlineExceeded) {
		return []byte{1}, nil
	}
	return nil, err
})

// RemoveTree removes a directory that a session could write, with everything in
// it; see removeTree.
func RemoveTree(ctx context.Context, dir string) error { return removeTree(ctx, dir) }
