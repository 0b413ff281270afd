//go:build linux

package ordinary

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the table of README.md")

const (
	readme   = "../../README.md"
	tableTop = "<!-- rows of tests/ordinary; go test ./tests/ordinary -update -->\n"
	tableEnd = "<!-- end of rows -->\n"
)

func TestTheReadmeListsWhatWorks(t *testing.T) {
	t.Parallel()
	var table strings.Builder
	table.WriteString("| works inside | beyond the default settings | with the network off | without namespaces " +
		"|\n|---|---|---|---|\n")
	for _, row := range rows(t) {
		grant, offline, without := "", "works", "works"
		if path := row.Key("grant"); path != "" {
			grant = fmt.Sprintf("`additional_read_write_paths`: `%s`", path)
		}
		if row.Key("network") == "localhost" {
			offline = "with a network namespace"
		}
		if path := row.Key("without"); path != "" {
			without = fmt.Sprintf("with `%s` granted too", path)
		}
		fmt.Fprintf(&table, "| %s | %s | %s | %s |\n", row.Title, grant, offline, without)
	}
	data, err := os.ReadFile(readme)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(data), tableTop)
	old, after, ended := strings.Cut(rest, tableEnd)
	if !found || !ended {
		t.Fatal("the table is not marked")
	}
	switch {
	case old == table.String():
	case *update:
		if err := os.WriteFile(readme, []byte(before+tableTop+table.String()+tableEnd+after), 0o644); err != nil {
			t.Fatal(err)
		}
	default:
		t.Errorf("the table says something else than the rows; go test ./tests/ordinary -update:\n%s", old)
	}
}
