//go:build linux

package attack

import (
	"os"
	"regexp"
	"slices"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// wayOut is a row of the tables in docs/design/what-runs-outside.md.
type wayOut struct{ number, title string }

func waysOut(t testing.TB) []wayOut {
	t.Helper()
	text, err := os.ReadFile("../../docs/design/what-runs-outside.md")
	harness.Must(t, err)
	var ways []wayOut
	row := regexp.MustCompile(`(?m)^\| (\d+) \| ([^|]+) \| [^|]+ \|$`)
	for _, row := range row.FindAllStringSubmatch(string(text), -1) {
		ways = append(ways, wayOut{row[1], row[2]})
	}
	return ways
}

// Each row of the tables has an attack, and each attack a row.
func TestEveryWayOutHasAnAttack(t *testing.T) {
	t.Parallel()
	const whole = "6" // the second table
	var numbers []string
	for _, file := range attackFiles(t) {
		if way := file.Key("way"); way != "" {
			numbers = append(numbers, way)
		}
	}
	ways := waysOut(t)
	if len(ways) != 17 {
		t.Errorf("%d rows are read", len(ways))
	}
	for _, way := range ways {
		if way.number != whole && !slices.Contains(numbers, way.number) {
			t.Errorf("row %s has no attack: %s", way.number, way.title)
		}
	}
	for _, number := range numbers {
		if !slices.ContainsFunc(ways, func(way wayOut) bool { return way.number == number }) {
			t.Errorf("an attack names row %s, which does not exist", number)
		}
	}
}
