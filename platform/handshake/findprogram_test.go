//go:build unix

package handshake

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

func TestFindProgram(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	for _, file := range []struct {
		path string
		mode os.FileMode
	}{
		{"first/tool", 0o755},
		{"second/tool", 0o755},
		{"second/other", 0o755},
		{"first/text", 0o644},
		{"second/text", 0o755},
		{"second/unreadable", 0o111},
		{"relative/hidden", 0o755},
		{"second/dir/file", 0o755},
	} {
		path := filepath.Join(root, file.path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, file.mode); err != nil {
			t.Fatal(err)
		}
	}
	path := "PATH=" + root + "/gone:" + root + "/first:" + root + "/second"
	for name, test := range map[string]struct {
		program string
		env     []string
		want    string // below root; empty if nothing is found
	}{
		"the first directory wins":               {"tool", []string{path}, "first/tool"},
		"later directories count":                {"other", []string{path}, "second/other"},
		"what cannot be executed is passed over": {"text", []string{path}, "second/text"},
		"programs need not be readable":          {"unreadable", []string{path}, "second/unreadable"},
		"directories are no programs":            {"dir", []string{path}, ""},
		"the last PATH counts": {
			"tool", []string{path, "PATH=" + root + "/second"}, "second/tool",
		},
		"an empty entry is not the current directory": {"hidden", []string{"PATH=:" + root + "/first"}, ""},
		"a relative entry is passed over":             {"hidden", []string{"PATH=relative:./relative"}, ""},
		"an empty name is no program":                 {"", []string{path}, ""},
		"other variables are not PATH": {
			"tool",
			[]string{"XPATH=" + root + "/first", "PATHS=" + root + "/first"},
			"",
		},
	} {
		got, err := FindProgram(test.program, test.env, 0)
		switch {
		case test.want == "" && !errors.Is(err, exec.ErrNotFound):
			t.Errorf("%s: found %q, %v", name, got, err)
		case test.want != "" && (err != nil || got != filepath.Join(root, test.want)):
			t.Errorf("%s: found %q, %v; want %q", name, got, err, test.want)
		}
	}
	if got, err := FindProgram("./a/../b", nil, 0); got != "./a/../b" || err != nil {
		t.Errorf("a path with a slash: %q, %v", got, err)
	}
	if got, err := FindProgram("sh", nil, 0); err != nil || !filepath.IsAbs(got) {
		t.Errorf("without PATH: %q, %v", got, err)
	}
}
