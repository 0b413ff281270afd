package compile

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/settings/document"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/managed"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/resolve/resolvetest"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/source"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/textfile"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/trust"
)

func TestWarnings_NameTheRisk(t *testing.T) {
	t.Parallel()
	f := resolvetest.Tree(t, map[string]string{
		userFile: "", "/home/u/project/": "", "/tmp/": "", "/var/tmp/": "",
		"/home/u/link": "-> /home/u", "/home/u/root": "-> /",
		"/home/u/.zshrc": "-> project/zshrc",
	})
	const on = `{"enabled": true}`
	tests := []struct{ name, user, project, want string }{
		{"root", on, "/", "the project directory is /"},
		{"home", on, "/home/u", "is your home directory"},
		{"home by symlink", on, "/home/u/link", "is your home directory"},
		{"parent of home", on, "/home", "holds your home directory"},
		{"root by symlink", on, "/home/u/root", "the project directory is /"},
		{"temporary directory", on, "/tmp", "is shared by all programs"},
		{"other temporary directory", on, "/var/tmp", "is shared by all programs"},
		{"settings in the project", on, "/home/u/.config", `the settings file "` + userFile +
			`" is writable from inside: "/home/u/.config" is granted by projectDir (session)`},
		{
			"settings granted", `{"enabled": true, "additional_read_write_paths": ["~/.config"]}`, "/home/u/project",
			"granted by additional_read_write_paths (" + userFile + ":1)",
		},
		{
			"entries that do not count", `{"enabled": true, "additional_read_only_paths": ["x", "y"]}`,
			"/home/u/project", "2 settings do not count, the first: ",
		},
		{"one that does not", `{"enabled": "yes"}`, "/home/u/project", "a setting does not count: " + userFile +
			":1:38: error: enabled: expected true or false"},
		{
			"built-in grant through a writable link", `{"enabled": true, "additional_read_write_paths": ["~/"]}`,
			"/home/u/project", `"~/.zshrc" crosses the symlink`,
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s := snapshotOf(t, f, test.user, "")
			s.ProjectDir = test.project
			c := s.Compile(document.KindTool)
			if got := strings.Join(append(c.Warnings, c.Exposures(false)...), "\n"); !strings.Contains(got, test.want) {
				t.Errorf("warnings lack %q:\n%s", test.want, got)
			}
		})
	}
	if got := snapshotOf(t, f, on, "").Compile(document.KindTool).Warnings; len(got) != 0 {
		t.Errorf("an ordinary project: %q", got)
	}
	s := snapshotOf(t, f, `{"enabled": false}`, "")
	s.ProjectDir = "/"
	if got := s.Compile(document.KindTool).Warnings; len(got) != 0 {
		t.Errorf("what is not restricted cannot be at risk: %q", got)
	}
}

func TestExposures_AreLeftWhereProtectionDoesNotReach(t *testing.T) {
	t.Parallel()
	f := resolvetest.Tree(t, map[string]string{userFile: "", "/home/u/project/": "", "/tmp/": ""})
	s := snapshotOf(t, f, `{"enabled": true, "additional_read_write_paths": ["~"]}`, "")
	s.Trust = &trust.List{Path: "/home/u/.local/state/sandbox-sidecar/trust.json"}
	c := s.Compile(document.KindTool)
	if got := c.Exposures(false); len(got) != 3 || !strings.Contains(got[0], userFile) ||
		!strings.Contains(got[1], `the list of trusted projects "/home/u/.local/state/sandbox-sidecar/trust.json"`) ||
		!strings.Contains(got[2], `the sidecar's state "/home/u/.local/state/sandbox-sidecar"`) {
		t.Errorf("where nothing is protected: %q", got)
	}
	if got := c.Exposures(true); len(got) != 0 {
		t.Errorf("where the directories are mounted: %q", got)
	}
	s = again(s)
	s.Trust = &trust.List{Path: "/home/u/elsewhere/trust.json"}
	c = s.Compile(document.KindTool)
	if got := c.Exposures(true); len(got) != 1 ||
		!strings.Contains(got[0], `the list of trusted projects "/home/u/elsewhere/trust.json"`) {
		t.Errorf("where what is there is protected: %q", got)
	}
}

// A home in /tmp is open to sessions only if they share it.
func TestExposures_OfAHomeInTmp(t *testing.T) {
	t.Parallel()
	f := resolvetest.Tree(t, map[string]string{userFile: "", "/home/u/project/": "", "/tmp/h/": ""})
	for settings, want := range map[string][2]int{ // without namespaces, with them
		`{"enabled": true}`: {1, 0},
		`{"enabled": true, "temporary_files": "shared"}`:               {1, 1},
		`{"enabled": true, "additional_read_write_paths": ["/tmp"]}`:   {1, 1},
		`{"enabled": true, "additional_read_write_paths": ["/tmp/h"]}`: {1, 1},
	} {
		s := snapshotOf(t, f, settings, "")
		s.Trust = &trust.List{Path: "/tmp/h/trust.json"}
		c := s.Compile(document.KindTool)
		if got := [2]int{len(c.Exposures(false)), len(c.Exposures(true))}; got != want {
			t.Errorf("%s: %d warnings, want %d", settings, got, want)
		}
	}
}

func TestGuarded_ListsFilesUnderBothNames(t *testing.T) {
	t.Parallel()
	f := resolvetest.Tree(t, map[string]string{
		"/home/u/dotfiles/zed.json":            "",
		"/home/u/.config/zed/settings.json":    "-> ../../dotfiles/zed.json",
		"/home/u/.config/zed/tasks.json":       "",
		"/home/u/.config/zed/themes/a.json":    "",
		"/home/u/.config/zed/more":             "-> themes",
		"/home/u/dotfiles/bashrc":              "",
		"/home/u/elsewhere/sidecar/other.json": "",
		"/home/u/.config/sandbox-sidecar":      "-> ../elsewhere/sidecar",
		"/home/u/my/settings.json":             "",
		"/home/u/my/unrelated.txt":             "",
		"/home/u/src/bin/sandbox-sidecar":      "",
		"/home/u/state/kept":                   "",
		"/home/u/.local/bin/sandbox-sidecar":   "-> /home/u/src/bin/sandbox-sidecar",

		"/home/u/.local/share/sandbox-sidecar/shells":     "-> /home/u/links",
		"/home/u/links/bash":                              "-> /home/u/src/bin/sandbox-sidecar",
		"/home/u/project/shells/bash":                     "-> /home/u/src/bin/sandbox-sidecar",
		"/home/u/.local/state/sandbox-sidecar/shells/one": "-> /home/u/project/shells",
		"/home/u/.local/state/sandbox-sidecar/shells/two": "-> /home/u/gone",
		"/home/u/.local/state/sandbox-sidecar/shells/all": "-> /",
	})
	s := snapshotOf(t, f, "", "")
	s.UserStates = []source.State{
		{File: "/home/u/.config/zed/settings.json"},
		{File: "/home/u/.config/sandbox-sidecar/settings.json"},
		{File: "/home/u/my/settings.json"},
		{File: "editor"},
	}
	want := []string{
		managed.File, "/home/u/.config/zed/debug.json", "/home/u/.config/zed/settings.json",
		"/home/u/.config/zed/tasks.json", "/home/u/dotfiles/zed.json",
		"/home/u/elsewhere/sidecar/settings.json", "/home/u/my/settings.json",
		"/home/u/src/bin/sandbox-sidecar", "/home/u/src/bin/sandbox-sidecar-mcp",
		"/home/u/.local/bin/sandbox-sidecar", "/home/u/.local/share/sandbox-sidecar/shells", "/home/u/links",
		"/home/u/.local/state/sandbox-sidecar/shells", "/home/u/project/shells",
	}
	slices.Sort(want)
	s.OwnPaths = []string{
		"/home/u/src/bin/sandbox-sidecar", "/home/u/src/bin/sandbox-sidecar-mcp", "/home/u/state", "/home/u/missing",
		"/home/u/.local/bin/sandbox-sidecar",
	}
	if got := s.Guarded(); !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

func TestReadFile_DoesNotHangOrGrowWithoutBound(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	sparse := filepath.Join(dir, "sparse")
	file, err := os.Create(sparse)
	if err != nil {
		t.Fatal(err)
	}
	if err := file.Truncate(100 << 20); err != nil {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	most := filepath.Join(dir, "most")
	if err := os.WriteFile(most, make([]byte, textfile.MaxSize), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, _, err := textfile.Read(sparse); err == nil {
		t.Error("100 MiB are accepted")
	}
	if data, _, err := textfile.Read(most); err != nil || len(data) != textfile.MaxSize {
		t.Errorf("the largest file: %d bytes, %v", len(data), err)
	}
	if _, _, err := textfile.Read(filepath.Join(most, "x")); !textfile.Missing(err) {
		t.Errorf("a path through a file: %v", err)
	}
}

func TestCheckPattern(t *testing.T) {
	t.Parallel()
	for pattern, legal := range map[string]bool{
		"A": true, "_a9": true, "A_*": true, "A*": true, "": false, "*": false, "9": false, "A-B": false, "A*B": false,
		"A**": false,
		"*A":  false, "A=B": false, "Ä": false, "A\n": false,
	} {
		if err := checkPattern(pattern); (err == nil) != legal {
			t.Errorf("%q: %v", pattern, err)
		}
	}
}

// A project in such a place is warned of, and no other.
func TestAdvice_WarnsOfProjects(t *testing.T) {
	t.Parallel()
	for project, want := range map[string]string{
		"/home/u/project": "", "/home/u/project/.git": "", "/srv/x": "", "/opt/x": "",
		"/home/u/.ssh":              "holds SSH keys: sessions may read and write them",
		"/home/u/.gnupg":            "holds GnuPG keys: sessions may read and write them",
		"/home/u/.config/autostart": "sessions may write it, and your desktop or login runs it",
		"/home/u/.local/bin/x":      "sessions may write it, and your shells find programs there",
		"/home/u/.config":           `sessions may write it, and "/home/u/.config/gh" is below it`,
		"/etc/x":                    "sessions may write it, and programs of the whole machine act on it",
	} {
		s := snapshotOf(t, resolvetest.InMemory(map[string]string{project + "/": "", "/home/u/": ""}),
			`{"enabled": true}`, "")
		s.ProjectDir = project
		got := strings.Join(s.evaluation(document.KindTool).projectRisks, "\n")
		if want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q", project, got, want)
		}
	}
}

// What a variable names in the project is the project's own.
func TestWarnings_NotOfTheProjectsOwnFiles(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		project string
		warned  bool
	}{{"/home/u/project", false}, {"/home/u/.kube", true}} {
		s := snapshotOf(t, resolvetest.InMemory(map[string]string{test.project + "/kube": ""}), `{"enabled": true}`, "")
		s.Host.Env = map[string]string{"KUBECONFIG": test.project + "/kube"}
		s.ProjectDir = test.project
		if risks := s.evaluation(document.KindTool).projectRisks; len(risks) > 0 != test.warned {
			t.Errorf("%s: warnings %q", test.project, risks)
		}
	}
}
