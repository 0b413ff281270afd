package settings

import (
	"errors"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sandbox-sidecar/sandbox-sidecar/fsguard"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/document"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/resolve"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/resolve/resolvetest"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/textfile"
)

// While one project's file is looked at, which may take as long as its file
// system does, the others' settings are there.
func TestStore_OneProjectDoesNotWaitForAnother(t *testing.T) {
	t.Parallel()
	d := newFixture(t)
	d.write(d.user, enabled)
	store := d.open(nil)
	hung, healthy := filepath.Join(d.home, "hung"), filepath.Join(d.home, "healthy")
	store.Snapshot(hung)
	source := store.sources[filepath.Join(hung, ".zed", "settings.json")]
	source.mu.Lock()
	defer source.mu.Unlock()
	done := make(chan bool)
	go func() { done <- *store.Snapshot(healthy).Merged().Enabled }()
	select {
	case on := <-done:
		if !on {
			t.Error("the user's settings do not count")
		}
	case <-time.After(20 * time.Second):
		t.Fatal("a snapshot of another project waits")
	}
}

// silentBelow makes everything below a directory unanswered.
func silentBelow(f resolve.FS, dir string) resolve.FS {
	fails := func(path string) error {
		if path == dir || strings.HasPrefix(path, dir+"/") {
			return &fs.PathError{Op: "lstat", Path: path, Err: fsguard.ErrNoAnswer}
		}
		return nil
	}
	return resolve.FS{
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
		if strings.Contains(warned, "not protected") != (want.warning != "") || !strings.Contains(warned, want.warning) {
			t.Errorf("%s: the warnings are %q", dir, warned)
		}
	}
}

// A project's own settings that nobody can read may have restricted it.
func TestCompile_AProjectWhoseSettingsNeverAnswered(t *testing.T) {
	t.Parallel()
	s := snapshotOf(t, resolvetest.InMemory(map[string]string{"/home/u/project/x": ""}), `{"enabled": true}`, "")
	problem := document.Diagnostic{Line: 1, Column: 1, Severity: document.SeverityError,
		Message: "cannot read: the file system does not answer"}
	s.project = &fileState{file: projectFile, exists: true, problem: &problem, silent: true}
	if got := s.Compile(document.KindTool).NoAnswer; got != projectFile {
		t.Errorf("what does not answer is %q", got)
	}
	good := stateOf(t, projectFile, `{"allow_network": false}`)
	s.project.good = good.good
	if compiled := s.Compile(document.KindTool); compiled.NoAnswer != "" || compiled.Policy.Network.Allowed {
		t.Errorf("the last good content does not count: %q", compiled.NoAnswer)
	}
}

// What was seen of a file stays while its file system does not answer, and is
// never taken for absent.
func TestSource_ThatDoesNotAnswerIsNotAbsent(t *testing.T) {
	t.Parallel()
	s := newSource("/somewhere/settings.json", "linux")
	state, changed := s.unusable(&fs.PathError{Op: "stat", Path: s.path, Err: fsguard.ErrNoAnswer})
	if !changed || !state.exists || !state.silent || state.problem == nil ||
		!strings.Contains(state.problem.Message, "does not answer") {
		t.Errorf("a file that was never seen is %+v", state)
	}
	if err := error(&fs.PathError{Err: fsguard.ErrNoAnswer}); textfile.Missing(err) || errors.Is(err, fs.ErrNotExist) {
		t.Error("it counts as missing")
	}
}
