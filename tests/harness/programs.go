package harness

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// SearchPath has the distribution's programs and Go's, for tests that must not
// use programs of somebody's home.
const SearchPath = "/usr/local/go/bin:/usr/local/bin:/usr/bin:/bin"

// RequirePrograms does what Skip does if one of the programs is not in
// SearchPath.
func RequirePrograms(t testing.TB, programs ...string) {
	t.Helper()
	for _, program := range programs {
		if !slices.ContainsFunc(strings.Split(SearchPath, ":"), func(dir string) bool {
			_, err := os.Stat(filepath.Join(dir, program))
			return err == nil
		}) {
			Skip(t, program, "not in "+SearchPath)
		}
	}
}
