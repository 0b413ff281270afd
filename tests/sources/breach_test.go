package sources

import (
	"io/fs"
	"regexp"
	"strings"
	"testing"
)

// unmarked is a report of a broken promise that a runner takes for an accident.
var unmarked = regexp.MustCompile(`\.(Error|Errorf|Fatal|Fatalf)\([^\n"]*"[^\n"]*(THE ATTACK WORKS|outlive|surviv)`)

// What breaks a promise is reported by harness.Breach, or the test would run again.
func TestBreaches_AreReportedAsSuch(t *testing.T) {
	t.Parallel()
	reports := 0
	goFiles(t, func(file string) {
		if !strings.HasSuffix(file, "_test.go") {
			return
		}
		source, err := fs.ReadFile(root, file)
		if err != nil {
			t.Fatal(err)
		}
		reports += strings.Count(string(source), "harness.Breach(")
		if found := unmarked.FindString(string(source)); found != "" && file != "tests/sources/breach_test.go" {
			t.Errorf("%s: use harness.Breach: %s", file, found)
		}
	})
	if reports < 100 {
		t.Errorf("only %d breaches are reported", reports)
	}
}
