package compile

import (
	"io/fs"
	"strings"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/fsguard"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/document"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/resolve"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/resolve/resolvetest"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/settingstest"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/source"
)

// silentBelow makes everything below a directory unanswered.
func silentBelow(f resolve.FS, dir string) resolve.FS {
	fails := func(path string) error {
		if path == dir || strings.HasPrefix(path, dir+"/") {
			return &fs.PathError{Op: "lstat", Path: path, Err: fsguard.ErrNoAnswer}
		}
		return nil
	}
	return resolve.FS{
		Hostname: f.Hostname, HomeOf: f.HomeOf, Addresses: f.Addresses,
		Lstat: func(path string) (fs.FileMode, error) {
			if err := fails(path); err != nil {
				return 0, err
			}
			return f.Lstat(path)
		},
		Readlink: f.Readlink,
		ReadDir: func(path string) ([]string, error) {
			if err := fails(path); err != nil {
				return nil, err
			}
			return f.ReadDir(path)
		},
		ReadFile: func(path string) ([]byte, error) {
			if err := fails(path); err != nil {
				return nil, err
			}
			return f.ReadFile(path)
		},
		Dirs: func(path string) ([]string, error) {
			if err := fails(path); err != nil {
				return nil, err
			}
			return f.Dirs(path)
		},
		Links: func(roots []string) ([]string, error) {
			for _, root := range roots {
				if err := fails(root); err != nil {
					return nil, resolve.ErrNotAllFound
				}
			}
			return f.Links(roots)
		},
		Oldest: func(dir, file string, most int) ([]string, error) {
			if err := fails(dir); err != nil {
				return nil, err
			}
			return f.Oldest(dir, file, most)
		},
		Modes: func(path string) (resolve.Modes, error) {
			if err := fails(path); err != nil {
				return resolve.Modes{}, err
			}
			return f.Modes(path)
		},
	}
}

func TestCompile_WhatDoesNotAnswer(t *testing.T) {
	t.Parallel()
	const project = "/home/u/project"
	whole := map[string]string{
		project + "/.git/HEAD": "", project + "/.git/config": "", project + "/.git/hooks/x": "", project +
			"/.git/objects/": "", project + "/.git/refs/": "",
		project + "/.vscode/tasks.json": "", project + "/src/x": "", "/mnt/data/x": "", "/mnt/git/config": "",
		"/home/u/.gitconfig": "[include]\n\tpath = /mnt/git/config\n",
	}
	for dir, want := range map[string]struct {
		noAnswer      string
		access        string // of /mnt/data
		said, warning string
	}{
		"/nowhere":             {access: "read"},
		project:                {noAnswer: project, access: "read"},
		project + "/.git":      {noAnswer: project + "/.git", access: "read"},
		project + "/.vscode":   {noAnswer: project + "/.vscode", access: "read"},
		project + "/src":       {access: "read"},
		"/mnt/data":            {said: "does not answer; the entry does not count"},
		"/mnt/git":             {access: "read", warning: "/mnt/git/config"},
		"/home/u/.gitconfig":   {access: "read", warning: "/home/u/.gitconfig"},
		"/mnt":                 {said: "does not answer; the entry does not count", warning: "/mnt/git/config"},
		project + "/.git/HEAD": {access: "read"},
	} {
		s := snapshotOf(t, silentBelow(resolvetest.InMemory(whole), dir),
			`{"enabled": true, "additional_read_only_paths": ["/mnt/data"]}`, "")
		compiled := s.Compile(document.KindTool)
		if compiled.NoAnswer != want.noAnswer {
			t.Errorf("%s: what does not answer is %q", dir, compiled.NoAnswer)
		}
		if got := accessOf(compiled, "/mnt/data"); (got == "read") != (want.access == "read") {
			t.Errorf("%s: the data is granted for %q", dir, got)
		}
		if text := said(compiled, userFile); !strings.Contains(text, want.said) || want.said == "" &&
			strings.Contains(text, "answer") {
			t.Errorf("%s: it is said %q", dir, text)
		}
		warned := strings.Join(compiled.Warnings, "\n")
		if strings.Contains(warned, "not protected") != (want.warning != "") ||
			!strings.Contains(warned, want.warning) {
			t.Errorf("%s: the warnings are %q", dir, warned)
		}
	}
}

// A project's settings that nobody can read may have restricted it.
func TestCompile_AProjectWhoseSettingsNeverAnswered(t *testing.T) {
	t.Parallel()
	s := snapshotOf(t, resolvetest.InMemory(map[string]string{"/home/u/project/x": ""}), `{"enabled": true}`, "")
	problem := document.Diagnostic{
		Line: 1, Column: 1, Severity: document.SeverityError,
		Message: "cannot read: the file system does not answer",
	}
	s.ProjectState = &source.State{File: projectFile, Exists: true, Problem: &problem, NoAnswer: true}
	if got := s.Compile(document.KindTool).NoAnswer; got != projectFile {
		t.Errorf("what does not answer is %q", got)
	}
	good := settingstest.State(t, projectFile, `{"allow_network": false}`)
	s.ProjectState.Good = good.Good
	if compiled := again(s).Compile(document.KindTool); compiled.NoAnswer != "" || compiled.Policy.Network.Allowed {
		t.Errorf("the last good content does not count: %q", compiled.NoAnswer)
	}
}

// Where too many worktrees are registered to compare their ages, an older one could
// be left out: no sandboxed session starts, neither in the project nor beside it.
func TestCompile_WorktreesThatCannotBeCompared(t *testing.T) {
	t.Parallel()
	for dir, user := range map[string]string{
		"/home/u/project/.git/worktrees": `{"enabled": true}`,
		"/home/u/other/.git/worktrees":   `{"enabled": true, "additional_read_write_paths": ["~/other"]}`,
		"":                               `{"enabled": true, "additional_read_write_paths": ["~/other"]}`,
	} {
		f := resolvetest.InMemory(map[string]string{
			"/home/u/project/.git/HEAD": "", "/home/u/project/.git/objects/": "", "/home/u/project/.git/refs/": "",
			"/home/u/other/.git/HEAD": "", "/home/u/other/.git/objects/": "", "/home/u/other/.git/refs/": "",
		})
		f.Oldest = func(asked, _ string, _ int) ([]string, error) {
			if asked == dir {
				return nil, resolve.ErrTooManyNames
			}
			return nil, nil
		}
		result := snapshotOf(t, f, user, "").Compile(document.KindTool)
		_, cause := result.Unready()
		if dir == "" {
			if cause != nil {
				t.Errorf("the control: %v", cause)
			}
			continue
		}
		if cause == nil || !strings.Contains(cause.Error(), dir) {
			t.Errorf("%s: %v", dir, cause)
		}
	}
}
