package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// A name that a part leaves out or selects is that of a test.
func TestParts_NameTestsThatExist(t *testing.T) {
	t.Parallel()
	var files []string
	for _, dir := range []string{"settings/compile", "settings/explain", "tests/explain", "rpc"} {
		list, err := filepath.Glob("../../" + dir + "/*_test.go")
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, list...)
	}
	var names []string
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range regexp.MustCompile(`(?m)^func (Test\w+)`).FindAllStringSubmatch(string(text), -1) {
			names = append(names, found[1])
		}
	}
	for _, begin := range slices.Concat(generated, repeated) {
		if !slices.ContainsFunc(names, func(name string) bool { return strings.HasPrefix(name, begin) }) {
			t.Errorf("no test begins with %s", begin)
		}
	}
}

// The package of storms exists, and starts last.
func TestParts_StormsAreLast(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat("../../" + storms); err != nil {
		t.Error(err)
	}
	got := goTests("x", "root", nil, nil, nil, []string{"./a", storms, "./z"}).command
	if want := []string{"./a", "./z", storms}; !slices.Equal(got[len(got)-3:], want) {
		t.Errorf("%q", got)
	}
}

// What a machine lacks is no success.
func TestRan_SaysWhatIsSkipped(t *testing.T) {
	t.Parallel()
	for _, again := range []func([]test) [][]string{nil, func([]test) [][]string { return nil }} {
		p := part{name: "x", command: []string{"echo", lacking + " debian: everything"}, again: again}
		r := run(t.Context(), p, func(why string) { t.Error(why) }, func(string) {})
		if !strings.Contains(r.String(), "1 skipped; "+lacking+" debian") || r.counts()["skip"] != 1 {
			t.Error(r)
		}
	}
}
