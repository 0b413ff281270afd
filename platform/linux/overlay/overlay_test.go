//go:build unix

package overlay

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// stored makes a directory of overlays with one cache.
func stored(t *testing.T) (dir, upper string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "overlays")
	own := filepath.Join(dir, nameOf("/home/u/.npm"))
	upper = filepath.Join(own, upperName)
	for _, path := range []string{filepath.Join(upper, "sub"), filepath.Join(own, workName, workName)} {
		if err := os.MkdirAll(path, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(own, pathName), []byte("/home/u/.npm"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(upper, "sub", "file"), make([]byte, 50_000), 0o400); err != nil {
		t.Fatal(err)
	}
	// As the kernel leaves its directory, and as Go makes directories read-only.
	for path, mode := range map[string]os.FileMode{
		filepath.Join(own, workName, workName): 0, filepath.Join(upper, "sub"): 0o555,
	} {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
	}
	return dir, upper
}

func everything(Stored) bool { return true }

func TestClear_RemovesLockedDirectories(t *testing.T) {
	t.Parallel()
	dir, upper := stored(t)
	list, err := List(dir)
	if err != nil || len(list) != 1 || list[0].Path != "/home/u/.npm" || list[0].Bytes < 50_000 {
		t.Fatalf("List: %+v, %v", list, err)
	}
	cleared, err := Clear(context.Background(), dir, func(Stored) bool { return false })
	if err != nil || len(cleared) != 0 {
		t.Errorf("Clear of nothing: %+v, %v", cleared, err)
	}
	if cleared, err = Clear(context.Background(), dir, everything); err != nil || len(cleared) != 1 {
		t.Errorf("Clear: %+v, %v", cleared, err)
	}
	if _, err := os.Lstat(filepath.Dir(upper)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the directory of the cache is left: %v", err)
	}
}

func TestClear_RefusesWhileInUse(t *testing.T) {
	t.Parallel()
	dir, upper := stored(t)
	opened, err := openMade(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer opened.Close()
	use, err := openLock(opened, useLock)
	if err != nil {
		t.Fatal(err)
	}
	if err := lock(use, unix.LOCK_NB); err != nil {
		t.Fatal(err)
	}
	if cleared, err := Clear(context.Background(), dir, everything); err == nil || len(cleared) != 0 {
		t.Errorf("Clear while in use: %+v, %v", cleared, err)
	}
	if _, err := os.Lstat(upper); err != nil {
		t.Error(err)
	}
	use.Close()
	if cleared, err := Clear(context.Background(), dir, everything); err != nil || len(cleared) != 1 {
		t.Errorf("Clear afterwards: %+v, %v", cleared, err)
	}
}

func TestList_OfNothing(t *testing.T) {
	t.Parallel()
	for _, dir := range []string{"", filepath.Join(t.TempDir(), "none")} {
		if list, err := List(dir); err != nil || len(list) != 0 {
			t.Errorf("List(%q): %+v, %v", dir, list, err)
		}
		if cleared, err := Clear(context.Background(), dir, everything); err != nil || len(cleared) != 0 {
			t.Errorf("Clear(%q): %+v, %v", dir, cleared, err)
		}
	}
}

func TestList_NamesAFileInTheWay(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{file, filepath.Join(file, "overlays")} {
		_, err := List(dir)
		_, errClear := Clear(context.Background(), dir, everything)
		for _, err := range []error{err, errClear} {
			if err == nil || !strings.Contains(err.Error(), dir+": not a directory") {
				t.Errorf("%s: %v", dir, err)
			}
		}
	}
}

// A directory that others may enter is not used.
func TestOpen_RefusesASharedDirectory(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if file, err := openDir(dir); err == nil {
		file.Close()
		t.Error("a directory that others may enter is used")
	}
}
