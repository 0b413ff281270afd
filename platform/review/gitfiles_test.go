package review

import (
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/deadline"
)

// What is no file or directory in a repository is listed if it is new, except in
// the directories of objects, which git only reads.
func TestFindings_WhatGitWouldFollow(t *testing.T) {
	t.Parallel()
	p := project{t, t.TempDir()}
	git := filepath.Join(p.dir, ".git")
	link := func(names ...string) {
		for _, name := range names {
			p.write(filepath.Join(".git", filepath.Dir(name), "file"), "")
			if err := os.Symlink("target", filepath.Join(git, name)); err != nil {
				t.Fatal(err)
			}
		}
	}
	link("logs/before", "before")
	info, err := os.Lstat(filepath.Join(git, "before"))
	if err != nil {
		t.Fatal(err)
	}
	old := func() bool { return time.Since(changedAt(info)) > 2*fileTimeLag }
	if !deadline.Until(time.Minute, old) {
		t.Fatal("the clock stands still")
	}
	s := Take(&policy.Policy{Project: p.dir, GitDirs: []string{git}})
	link("logs/HEAD", "refs/heads/a/b", "objects/aa/x", "objects/pack/x", "objects/bb")
	if err := syscall.Mkfifo(filepath.Join(git, "FETCH_HEAD"), 0o600); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, f := range s.Findings() {
		for _, path := range append([]string{f.Path}, f.Others...) {
			name, err := filepath.Rel(git, path)
			if err != nil {
				t.Fatal(err)
			}
			text := name + " " + string(f.How)
			if f.Group != string(links) {
				text += ": " + f.Why
			}
			got = append(got, text)
		}
	}
	slices.Sort(got)
	want := []string{"FETCH_HEAD created: " + whyWaits}
	for _, name := range []string{"logs/HEAD", "objects/bb", "objects/pack/x", "refs/heads/a/b"} {
		want = append(want, name+" created")
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
