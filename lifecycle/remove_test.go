//go:build unix

package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
)

// The watchdog of a dead sidecar and the user's next sidecar may remove the same
// directory.
func TestRemoveTree_ByManyAtATime(t *testing.T) {
	t.Parallel()
	for round := range 20 {
		dir := filepath.Join(t.TempDir(), "dir")
		for i := range 20 {
			deep := filepath.Join(dir, fmt.Sprint(i), "a/b/c/d")
			err := errors.Join(os.MkdirAll(deep, 0o700), os.WriteFile(filepath.Join(deep, "file"), nil, 0o600),
				os.Chmod(filepath.Join(dir, fmt.Sprint(i), "a"), 0o500))
			if err != nil {
				t.Fatal(err)
			}
		}
		var removers sync.WaitGroup
		for range 4 {
			removers.Go(func() {
				if err := removeTree(context.Background(), dir); err != nil {
					t.Errorf("round %d: %v", round, err)
				}
			})
		}
		removers.Wait()
		if _, err := os.Lstat(dir); !errors.Is(err, os.ErrNotExist) {
			t.Fatalf("round %d: it is still there: %v", round, err)
		}
	}
}

// What the helper calls for a file system that may not answer removes the same, and
// answers whether something is left.
func TestRemoveByHelper_RemovesTheTree(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "s1")
	if err := os.MkdirAll(filepath.Join(dir, "a", "b"), 0o700); err != nil {
		t.Fatal(err)
	}
	for range 2 { // what is gone is no error
		left, err := removeByHelper(dir, nil)
		_, there := os.Lstat(dir)
		if err != nil || len(left) > 0 || !errors.Is(there, os.ErrNotExist) {
			t.Errorf("%v, left %v, it is there: %v", err, left, there)
		}
	}
}
