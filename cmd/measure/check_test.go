package main

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestCheck_NamesFileAndLine(t *testing.T) {
	t.Parallel()
	files := []string{
		"-- wide.go --\npackage a\n\nvar x = \"" + strings.Repeat("x", 111) + "\"",
		"-- comment.go --\npackage a\n\n// " + strings.Repeat("x", 83),
		"-- fits.go --\npackage a\n\n// " + strings.Repeat("x", 82) + "\nvar y = \"" + strings.Repeat("ü", 110) + "\"",
		"-- text.md --\n\n" + words(46),
		"-- table.go --\npackage a\n\n//\t" + strings.Repeat("x", 100),
		"-- data.go --\npackage a\n\nvar data = `\n" + strings.Repeat("x", 130) + "\n`",
		"-- data_test.go --\npackage a\n\nvar line = \"" + strings.Repeat("x", 130) + "\"",
	}
	var out strings.Builder
	err := run([]string{write(t, strings.Join(files, "\n")+"\n")}, &out)
	if err == nil {
		t.Error("it does not fail")
	}
	want := []string{
		"comment.go:3: comment of 86 columns, at most 85 (better 80): wrap it",
		"wide.go:3: line of 121 columns, at most 120: break it",
		"text.md:2: sentence of 46 words, at most 45: split it, one claim a sentence: ",
	}
	if got := strings.Split(strings.TrimSpace(out.String()), "\n"); !slices.EqualFunc(got, want, strings.HasPrefix) {
		t.Errorf("findings:\n%s\nwant:\n%s", &out, strings.Join(want, "\n"))
	}
	out.Reset()
	if err := run([]string{"-check=false", write(t, files[0]+"\n")}, &out); err != nil || out.Len() == 0 {
		t.Errorf("-check=false: %v, printed %q", err, &out)
	}
	if err := run([]string{"-check", write(t, files[0]+"\n")}, &out); err == nil {
		t.Error("-check does not fail")
	}
	if err := run([]string{write(t, strings.ReplaceAll(small, "WIDE", strings.Repeat("x", 120)))}, &out); err != nil {
		t.Errorf("a project within bounds: %v", err)
	}
	if err := run([]string{filepath.Join(t.TempDir(), "none")}, &out); err == nil {
		t.Error("a directory that does not exist was measured")
	}
}
