package sources

import (
	"go/build"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// If all tests of a package are for one system, another system says "no test
// files", as if there were none. So each package has at least one test there
// that is skipped with the name of what is missing. Excepted are the packages
// of the Linux backend, and programs that are not built there.
func TestPackages_SayWhatTheyLackElsewhere(t *testing.T) {
	t.Parallel()
	mac := build.Default
	mac.GOOS, mac.GOARCH = "darwin", "arm64"
	seen := 0
	err := filepath.WalkDir("../..", func(dir string, entry fs.DirEntry, err error) error {
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
