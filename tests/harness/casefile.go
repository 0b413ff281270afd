package harness

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
)

// CaseFile is a test written as a file: a title, lines "key: value", and
// sections of text.
type CaseFile struct {
	// Name is that of the file, without its ending.
	Name string
	// Number is its place among the files of its directory, from 0.
	Number int
	// Title is the first line.
	Title    string
	keys     map[string]string
	sections map[string]string
}

// CaseFiles reads every *.txtar file of a directory, sorted by name. An unknown
// key or section fails the test, because nothing would read it.
func CaseFiles(t testing.TB, dir string, keys, sections []string) []CaseFile {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*.txtar"))
	if err != nil || len(names) == 0 {
		t.Fatalf("no case in %s: %v", dir, err)
	}
	cases := make([]CaseFile, len(names))
	for i, name := range names {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		archive := txtar.Parse(data)
		title, header, _ := strings.Cut(string(archive.Comment), "\n")
		c := CaseFile{
			Name: strings.TrimSuffix(filepath.Base(name),
				".txtar"), Number: i, Title: title, keys: map[string]string{}, sections: map[string]string{},
		}
		for line := range strings.Lines(header) {
			key, value, found := strings.Cut(strings.TrimSpace(line), ": ")
			if !found || !slices.Contains(keys, key) {
				t.Fatalf("%s: not a line of the header: %q", name, line)
			}
			c.keys[key] = value
		}
		for _, section := range archive.Files {
			if !slices.Contains(sections, section.Name) {
				t.Fatalf("%s: not a section: %q", name, section.Name)
			}
			c.sections[section.Name] = string(section.Data)
		}
		if title == "" {
			t.Fatalf("%s: the first line does not say what it is about", name)
		}
		cases[i] = c
	}
	return cases
}

// Key is the value of a line of the header, or "".
func (c CaseFile) Key(name string) string { return c.keys[name] }

// Section is the text of a section, or "".
func (c CaseFile) Section(name string) string { return c.sections[name] }
