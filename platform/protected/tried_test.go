package protected

import (
	"os"
	"path"
	"slices"
	"strings"
	"testing"
)

// prevented is the treatment of a protected name in testdata/tried.txt, and
// silent that of a name that nobody acts upon by itself. A group is its own.
const (
	prevented = "prevented"
	silent    = "silent"
)

// rowsOf are the rows of the table that a path below the project is in.
func rowsOf(at string) (rows []Name) {
	parts := strings.Split(at, "/")
	for _, name := range Names {
		depth := strings.Count(name.Path, "/") + 1
		if len(parts) < depth {
			continue
		}
		if is, err := path.Match(name.Path, strings.Join(parts[:depth], "/")); is && err == nil {
			rows = append(rows, name)
		}
	}
	return rows
}

// treatments are those of a path below the project, by the table.
func treatments(at string) (list []string) {
	for _, name := range rowsOf(at) {
		treatment := string(name.Group)
		if name.Group == "" {
			treatment = prevented
		}
		list = append(list, treatment)
	}
	if len(list) == 0 {
		list = []string{silent}
	}
	return list
}

// Each name that was tried has a treatment, and each that nothing is said about
// a reason.
func TestTried(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("testdata/tried.txt")
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	seen, rows := map[string]bool{}, map[string]bool{}
	for _, line := range lines {
		fields := strings.Split(line, "\t")
		at, want := fields[0], fields[1]
		if got := treatments(at); !slices.Contains(got, want) {
			t.Errorf("%s: %s, want %s", at, strings.Join(got, ", "), want)
		}
		if (want == silent) != (len(fields) == 3) || strings.HasSuffix(line, "\t") {
			t.Errorf("%s: only a silent name has a reason, and each does", at)
		}
		if seen[at] {
			t.Errorf("%s is listed twice", at)
		}
		seen[at] = true
		for _, name := range rowsOf(at) {
			rows[name.Path] = true
		}
	}
	for _, name := range Names {
		if !rows[name.Path] {
			t.Errorf("%s is in the table, and no name of it was tried", name.Path)
		}
	}
	if len(lines) < 476 {
		t.Errorf("%d names", len(lines))
	}
}
