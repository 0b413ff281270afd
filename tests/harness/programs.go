package harness

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// SearchPath is where the distribution's programs are, and Go's, for tests that
// want no other's: not what somebody has installed at home.
const SearchPath = "/usr/local/go/bin:/usr/local/bin:/usr/bin:/bin"

// RequirePrograms does what Skip does where one of the programs is not in
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
