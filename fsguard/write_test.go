//go:build unix

package fsguard

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// Both ways do the same: directly, and by the helper.
func TestWrite_WholeOrNotAtAll(t *testing.T) {
	t.Parallel()
	type write func(path string, data []byte, mode fs.FileMode) error
	by := func(op operation) write {
		r := newRemote()
		return func(path string, data []byte, mode fs.FileMode) error {
			_, err := r.call(request{Op: op, Path: text(path), Data: data, Mode: mode})
			return err
		}
	}
	for name, way := range map[string]struct{ replace, create write }{
		"directly": {Replace, Create}, "by the helper": {by(opReplace), by(opCreate)},
	} {
		dir := t.TempDir()
		file, link, target := filepath.Join(dir, "file"), filepath.Join(dir, "link"), filepath.Join(dir, "target")
		long := bytes.Repeat([]byte("0123456789"), 20_000)
		check := func(step string, want []byte, mode fs.FileMode) {
			t.Helper()
			got, err := os.ReadFile(file)
			info, statErr := os.Lstat(file)
			if err = errors.Join(err, statErr); err != nil {
				t.Fatalf("%s, %s: %v", name, step, err)
			}
			if !bytes.Equal(got, want) || info.Mode() != mode {
				t.Errorf("%s, %s: %d bytes, %v, want %d, %v", name, step, len(got), info.Mode(), len(want), mode)
			}
		}
		if err := way.create(file, []byte("new"), 0o600); err != nil {
			t.Fatalf("%s: create: %v", name, err)
		}
		check("create", []byte("new"), 0o600)
		if err := way.create(file, nil, 0o600); !errors.Is(err, fs.ErrExist) {
			t.Errorf("%s: create what exists: %v", name, err)
		}
		check("create what exists", []byte("new"), 0o600)
		if err := way.replace(file, long, 0o640); err != nil {
			t.Errorf("%s: replace: %v", name, err)
		}
		check("replace", long, 0o640)
		if err := errors.Join(os.Symlink(target, link)); err != nil {
			t.Fatal(err)
		}
		if err := way.create(link, nil, 0o600); !errors.Is(err, fs.ErrExist) {
			t.Errorf("%s: create behind a dangling symlink: %v", name, err)
		}
		if err := way.replace(link, []byte("x"), 0o600); err != nil {
			t.Errorf("%s: replace a symlink: %v", name, err)
		}
		if info, err := os.Lstat(link); err != nil || !info.Mode().IsRegular() {
			t.Errorf("%s: a symlink was followed: %v", name, err)
		}
		if err := way.replace(filepath.Join(dir, "none", "file"), nil, 0o600); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: replace in no directory: %v", name, err)
		}
		if list, err := os.ReadDir(dir); err != nil || len(list) != 2 {
			t.Errorf("%s: left behind: %v, %v", name, list, err)
		}
	}
}

func TestAccess_IsByPermissions(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Access(file, 4); err != nil {
		t.Errorf("read: %v", err)
	}
	if err := Access(file, 1); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("execute: %v", err)
	}
}
