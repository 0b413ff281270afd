//go:build unix

package logqueue

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// A log grows by each line, begins anew once it is large, and is private.
func TestFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "dir", "log")
	for _, line := range []string{"one\n", "two\n"} {
		if n, err := fmt.Fprint(File(path), line); n != len(line) || err != nil {
			t.Fatalf("%d, %v", n, err)
		}
	}
	if text, err := os.ReadFile(path); string(text) != "one\ntwo\n" || err != nil {
		t.Errorf("%q, %v", text, err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	if _, err := File(path).Write(bytes.Repeat([]byte("x"), maxFile)); err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Fprint(File(path), "three\n"); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(path); string(text) != "three\n" || err != nil {
		t.Errorf("%d bytes, %v", len(text), err)
	}
}

// Nothing is written through a link, nor to what is no file.
func TestFile_FollowsNoLink(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	target, link := filepath.Join(dir, "target"), filepath.Join(dir, "link")
	if err := errors.Join(os.WriteFile(target, nil, 0o600), os.Symlink(target, link)); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{link, dir} {
		if _, err := fmt.Fprint(File(path), "line\n"); err == nil {
			t.Errorf("%s was written", path)
		}
	}
	if text, err := os.ReadFile(target); len(text) > 0 || err != nil {
		t.Errorf("%q, %v", text, err)
	}
}
