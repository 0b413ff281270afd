//go:build linux

package ordinary

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the tables of the documents")

const (
	document = "../../docs/tools.md"
	tableEnd = "<!-- end of rows -->\n"
)

func TestTheDocumentListsWhatWorks(t *testing.T) { // alone: it may write the document
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
	checkTable(t, "rows of tests/ordinary, in each case", table.String())
}

func TestTheDocumentListsTheTools(t *testing.T) { // alone: it may write the document
	var table strings.Builder
	table.WriteString("| tool | setting | note |\n|---|---|---|\n")
	for _, tool := range tools(t) {
		setting := ""
		if key, value, needs := strings.Cut(tool.Key("suggested"), " "); needs {
			setting = fmt.Sprintf("`%s`: `%s`", key, value)
		}
		fmt.Fprintf(&table, "| %s | %s | %s |\n", tool.Title, setting, tool.Key("note"))
	}
	checkTable(t, "rows of tests/ordinary", table.String())
}

// checkTable compares a table of the document with what it should be, or writes
// it.
func checkTable(t *testing.T, name, table string) {
	t.Helper()
	tableTop := "<!-- " + name + "; go test ./tests/ordinary -update -->\n"
	data, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(data), tableTop)
	old, after, ended := strings.Cut(rest, tableEnd)
	if !found || !ended {
		t.Fatalf("%q is not in %s", name, document)
	}
	switch {
	case old == table:
	case *update:
		if err := os.WriteFile(document, []byte(before+tableTop+table+tableEnd+after), 0o644); err != nil {
			t.Fatal(err)
		}
	default:
		t.Errorf("the table of %s says something else than the rows; go test ./tests/ordinary -update:\n%s",
			document, old)
	}
}
