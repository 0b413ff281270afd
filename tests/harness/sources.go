package harness

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// noteSources opens every source file of the module. The go command caches the
// result of a test with the files that the test process opened. It does not see
// what "go build" reads in another process, and would report a cached result of
// an older sidecar.
func noteSources() error {
	root, err := os.Getwd()
	if err != nil {
		return err
	}
	for {
		if _, err := os.Stat(filepath.Join(root, "go.mod")); err == nil {
			break
		}
		parent := filepath.Dir(root)
		if parent == root {
			return errors.New("find module root: no go.mod above the working directory")
		}
		root = parent
	}
	return filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && (entry.Name() == "node_modules" || path != root && strings.HasPrefix(entry.Name(), ".")) {
			return fs.SkipDir
		}
		if name := entry.Name(); strings.HasSuffix(name, ".go") || name == "go.mod" || name == "go.sum" ||
			name == "schema.json" {
			file, err := os.Open(path)
			if err != nil {
				return err
			}
			return file.Close()
		}
		return nil
	})
}
