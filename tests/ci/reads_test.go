package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// What a test process reads of other packages is known, whatever its directory is
// then, and nothing else is.
func TestReads(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	for name, text := range map[string]string{
		"go.mod": "module example.com/m\n\ngo 1.21\n", "docs/page.md": "", "docs/other.md": "", "text": "",
		"a/own": "", "a/b/deep": "",
		"a/a_test.go": `package a

import (
	"os"
	"testing"
)

func Test(t *testing.T) {
	for _, name := range []string{"../docs/page.md", "own", "b/deep", "../missing", "/etc/passwd"} {
		_, _ = os.ReadFile(name)
	}
	if err := os.Chdir("../docs"); err != nil {
		t.Fatal(err)
	}
	_, _ = os.Stat("../text")
	_, _ = os.Stat("..")
	_, _ = os.ReadDir(".")
}
`,
	} {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	temporary := t.TempDir()
	program := filepath.Join(t.TempDir(), "ci")
	if out, err := exec.Command("go", "build", "-o", program, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	command := exec.Command("go", "test", "-json", "-count=1", "-exec", program+" timed", "./a")
	command.Dir = root
	command.Env = append(os.Environ(), "GOFLAGS=", "GOWORK=off", "TMPDIR="+temporary)
	out, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	r := newResults(func(why string) { t.Error(why) })
	for line := range strings.Lines(string(out)) {
		r.line([]byte(line))
	}
	got := []string{}
	for name := range r.reads["example.com/m/a"] {
		got = append(got, name)
	}
	if want := []string{"docs/page.md", "a/b/deep", "text", "docs"}; !sameNames(got, want) {
		t.Errorf("read %q instead of %q", got, want)
	}
	if left, err := filepath.Glob(filepath.Join(temporary, "sidecar-reads-*")); err != nil || len(left) > 0 {
		t.Errorf("logs are left: %q, %v", left, err)
	}
}

// A run is red if a test reads a file whose change would leave it out.
func TestLeftOut(t *testing.T) {
	t.Parallel()
	packages := ourPackages(t)
	of := func(dir string) string {
		for _, p := range packages {
			if p.Dir == dir {
				return p.ImportPath
			}
		}
		t.Fatalf("no package is %s", dir)
		return ""
	}
	files := []string{"docs/guide.md", "settings/git/find.go", "clients/vscode/src/a.ts", "go.mod", ""}
	for _, test := range []struct {
		reader, name string
		want         bool
	}{
		{"settings/gnupg", "docs/guide.md", true},           // a page
		{"settings/gnupg", "settings/git/find.go", true},    // a source of another package
		{"settings/gnupg", "clients/vscode/src", true},      // the entries of a directory
		{"settings/gnupg", "go.mod", false},                 // matters to everything
		{"settings/gnupg", "no/such/file", false},           // not in the repository
		{"settings/compile", "settings/git/find.go", false}, // of a package that it imports
	} {
		reads := map[string]map[string]bool{of(test.reader): {test.name: true}}
		missing := leftOut(packages, files, reads)
		if slices.Contains(missing, test.reader+" reads "+test.name) != test.want {
			t.Errorf("%+v: %q", test, missing)
		}
	}
}
