//go:build unix

package shells

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestCalledAs(t *testing.T) {
	for argv0, want := range map[string]string{
		"bash": "bash", "-bash": "bash", "/opt/x/bash": "bash", "sh": "sh", "-sh": "sh", "my-zsh": "zsh",
		"dash": "dash", "sandbox-sh": Generic, "-sandbox-sh": Generic, "fish": "fish", "rbash": "bash",
		"sandbox-sidecar": "", "": "", "python3": "", "sandbox-sidecar.exe": "", "/opt/bash/sandbox-sidecar": "",
	} {
		if name, is := CalledAs(argv0); name != want || is != (want != "") {
			t.Errorf("%q: %q, %t, want %q", argv0, name, is, want)
		}
	}
}

func TestParse(t *testing.T) {
	const typed, fed = true, false // stdin is a terminal
	for _, c := range []struct {
		line    string
		stdin   bool
		command bool
	}{
		{"", typed, false},
		{"", fed, true},
		{"-i", fed, false},
		{"-l", typed, false},
		{"--login", typed, false},
		{"-c x", typed, true},
		{"-lc x", typed, true},
		{"-c -l x", typed, true},
		{"-l -c x", typed, true},
		{"--posix -c x", typed, true},
		{"-o pipefail -c x", typed, true},
		{"-eo pipefail -c x", typed, true},
		{"+o history -i", typed, false},
		{"-o cshnullcmd", typed, false}, // the name of an option, not -c
		{"--rcfile /c -i", typed, false},
		{"--rcfile c", typed, false},
		{"--init-command x", typed, false},
		{"--command=x", typed, true},
		{"--command x", typed, true},
		{"script", typed, true},
		{"--norc script -i", typed, true},
		{"-- script", typed, true},
		{"-", typed, false},
		{"-s a b", fed, true},
		{"-s a b", typed, false},
		{"-is a", fed, false},
	} {
		got := Parse(strings.Fields(c.line), c.stdin)
		if got.Command != c.command || got.Bare != (c.line == "") {
			t.Errorf("%q with stdin a terminal: %t: %+v", c.line, c.stdin, got)
		}
	}
}

func TestFind(t *testing.T) {
	dir := t.TempDir()
	file := func(name string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.WriteFile(path, nil, mode), os.Chmod(path, mode)); err != nil {
			t.Fatal(err)
		}
		return path
	}
	self := file("self", 0o755)
	own := file("myksh", 0o755)
	links := filepath.Join(dir, "links")
	if err := errors.Join(os.Mkdir(links, 0o755), os.Symlink(self, filepath.Join(links, "ksh"))); err != nil {
		t.Fatal(err)
	}
	env := map[string]string{"PATH": links + ":" + dir + ":relative"}
	f := Finder{Self: self, Passwd: own, Getenv: func(name string) string { return env[name] }}
	if got, err := f.Find(Generic); got != own || err != nil {
		t.Errorf("the user's own: %q, %v", got, err)
	}
	if got, err := f.Find("ksh"); got != own || err != nil {
		t.Errorf("of the user's own name: %q, %v", got, err)
	}
	f.Passwd = filepath.Join(links, "ksh") // as chsh(1) may have set it
	if got, err := f.Find("ksh"); err == nil && (got == filepath.Join(links, "ksh") || got == self) {
		t.Errorf("found itself: %q", got)
	}
	if got, err := f.Find(Generic); got != "/bin/sh" || err != nil {
		t.Errorf("after itself: %q, %v", got, err)
	}
	if _, err := f.Find("noshell"); err == nil ||
		!strings.Contains(err.Error(), "no noshell in the usual directories") {
		t.Errorf("a shell that is missing: %v", err)
	}
	env[Variable] = self
	if _, err := f.Find("bash"); !errors.Is(err, errSelf) {
		t.Errorf("%s names this program: %v", Variable, err)
	}
}

// Without the second line of Neovim's, a filter's file is one that the sandbox
// hides.
func TestRecipes_SayWhatTheDocumentationSays(t *testing.T) {
	t.Parallel()
	doc, err := os.ReadFile("../../../docs/agents.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, recipe := range Recipes("…/shells", "bash", "linux") {
		if recipe.Program == "others" {
			continue // the table writes it otherwise
		}
		for _, line := range recipe.Lines {
			if line = strings.TrimSuffix(line, ","); !strings.Contains(string(doc), "`"+line+"`") {
				t.Errorf("%s: docs/agents.md has no %s", recipe.Program, line)
			}
		}
	}
}
