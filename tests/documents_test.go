package tests

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	markdownLink = regexp.MustCompile(`\]\(([^)\s#]+)(?:#[^)]*)?\)`)
	attackName   = regexp.MustCompile("`([a-z]+-[a-z*-]+)`")
)

// A reader who finds a broken link trusts the rest less.
func TestDocuments_LinkToWhatExists(t *testing.T) {
	t.Parallel()
	count := 0
	for _, document := range documents(t) {
		data, err := os.ReadFile(document)
		if err != nil {
			t.Fatal(err)
		}
		for _, link := range markdownLink.FindAllStringSubmatch(string(data), -1) {
			if strings.Contains(link[1], "://") {
				continue
			}
			count++
			if _, err := os.Stat(filepath.Join(filepath.Dir(document), link[1])); err != nil {
				t.Errorf("%s links to %s, which does not exist", document, link[1])
			}
		}
	}
	if count < 40 {
		t.Errorf("only %d links were found: the pattern for links is wrong", count)
	}
}

// SECURITY.md names the attacks behind a promise by patterns.
func TestSecurity_NamesAttacksThatExist(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("../SECURITY.md")
	if err != nil {
		t.Fatal(err)
	}
	count := 0
	for _, line := range strings.Split(string(data), "\n") {
		if !strings.HasPrefix(line, "| ") || !strings.Contains(line, "`") {
			continue
		}
		_, cell, _ := strings.Cut(strings.TrimPrefix(line, "| "), " | ")
		for _, name := range attackName.FindAllStringSubmatch(cell, -1) {
			found, err := filepath.Glob("attack/attacks/" + name[1] + ".txtar")
			if err != nil {
				t.Fatal(err)
			}
			if len(found) == 0 {
				t.Errorf("SECURITY.md names the attack %s, and tests/attack/attacks has none like it", name[1])
			}
			count += len(found)
		}
	}
	if count < 70 {
		t.Errorf("SECURITY.md names %d attacks: its table was not understood", count)
	}
}

// documents returns every Markdown file of the tree, except those of installed
// packages and the parts that cmd/gen writes into docs.
func documents(t *testing.T) []string {
	t.Helper()
	var found []string
	err := filepath.WalkDir("..", func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (entry.Name() == "node_modules" || entry.Name() == ".git" || entry.Name() == "build" ||
			path == "../cmd/gen/text"):
			return fs.SkipDir
		case strings.HasSuffix(path, ".md"):
			found = append(found, path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}
