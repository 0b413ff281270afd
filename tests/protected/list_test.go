//go:build linux

package protected

import (
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
)

// list lists everything below a directory with its mode and size, except git's
// index, which git may refresh at any time.
func list(t *testing.T, dir string) string {
	t.Helper()
	var out strings.Builder
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		size := info.Size()
		if entry.IsDir() {
			size = 0
		}
		fmt.Fprintf(&out, "%s %s %d\n", info.Mode(), strings.TrimPrefix(path, dir), size)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out.String()
}
