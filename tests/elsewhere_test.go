package tests

import (
	"go/build"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A package whose tests are all of one system would say "no test files" on
// another, which looks as if there were none to have. Each has at least one
// test there that says by name what is lacking. The packages of the Linux
// backend are what they are by their names, and a program that is not built
// there has nothing to lack.
func TestPackages_SayWhatTheyLackElsewhere(t *testing.T) {
	t.Parallel()
	mac := build.Default
	mac.GOOS, mac.GOARCH = "darwin", "arm64"
	seen := 0
	err := filepath.WalkDir("..", func(dir string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.IsDir() {
			return err
		}
		if name := entry.Name(); name == "node_modules" || name == "testdata" || len(name) > 2 &&
			strings.HasPrefix(name, ".") ||
			strings.Contains(dir, "platform/linux") {
			return fs.SkipDir
		}
		files, err := os.ReadDir(dir)
		if err != nil {
			return err
		}
		tests, there := 0, 0
		sources, built := 0, 0
		for _, file := range files {
			if !strings.HasSuffix(file.Name(), ".go") {
				continue
			}
			all, matching := &sources, &built
			if strings.HasSuffix(file.Name(), "_test.go") {
				all, matching = &tests, &there
			}
			*all++
			matches, err := mac.MatchFile(dir, file.Name())
			if err != nil {
				return err
			}
			if matches {
				*matching++
			}
		}
		if tests > 0 && (sources == 0 || built > 0) {
			seen++
			if there == 0 {
				t.Errorf("%s: none of its %d files of tests is for macOS", dir, tests)
			}
		}
		return nil
	})
	if err != nil || seen < 20 {
		t.Errorf("%d packages were looked at: %v", seen, err)
	}
}
