package settings

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestResolve_WalksAsTheKernelDoes(t *testing.T) {
	t.Parallel()
	entries := map[string]string{
		"/a/b/c/": "", "/a/file": "", "/abs": "-> /a/b", "/rel": "-> a/b/c", "/a/up": "-> ..", "/a/b/self": "-> .",
		"/chain": "-> rel/../self",
		"/gone":  "-> nowhere/x", "/loop": "-> loop2", "/loop2": "-> loop", "/slash": "-> a/b/", "/root": "-> /",
	}
	f := tree(t, entries)
	for path, want := range map[string]string{
		"/": "/", "//a///b/.": "/a/b", "/abs": "/a/b", "/abs/c": "/a/b/c", "/rel/..": "/a/b", "/a/up/a/up": "/",
		"/chain/c":         "/a/b/c",
		"/a/b/self/self/c": "/a/b/c", "/..": "/", "/../../a": "/a", "/slash": "/a/b", "/gone": "/nowhere/x",
		"/no/such":   "/no/such",
		"/no/../rel": "/a/b/c", "/no/such/../../abs/x": "/a/b/x", "/a/file/x": "/a/file/x", "/root/a": "/a",
		"/root/../rel": "/a/b/c",
	} {
		got := newResolver(f).resolve(path)
		if got.path != want || got.err != nil {
			t.Errorf("%s leads to %s (%v), want %s", path, got.path, got.err, want)
		}
		if _, err := f.lstat(got.path); got.exists != (err == nil) {
			t.Errorf("%s: exists %t, but %v", path, got.exists, err)
		}
	}
	if got := newResolver(f).resolve("/loop"); !errors.Is(got.err, errTooManyLinks) {
		t.Errorf("a loop: %v", got.err)
	}
	crossed := newResolver(f).resolve("/chain/c").links
	var names []string
	for _, l := range crossed {
		names = append(names, l.path+" in "+l.dir)
	}
	if got := strings.Join(names, ", "); got != "/chain in /, /rel in /, /a/b/self in /a/b" {
		t.Errorf("crossed %s", got)
	}
}

// On the real file system the walk and the kernel agree.
func TestResolve_AgreesWithTheSystem(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	for _, err := range []error{
		os.MkdirAll(filepath.Join(root, "a/b"), 0o755), os.Symlink("a/b", filepath.Join(root, "l")), os.Symlink("../l",
			filepath.Join(root, "a/m")),
		os.Symlink(root, filepath.Join(root, "a/b/top")),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, path := range []string{"/l", "/a/m", "/a/m/..", "/l/top/a/m/top", "/a/b/top/l/../m/."} {
		want, err := filepath.EvalSymlinks(root + path)
		if err != nil {
			t.Fatal(err)
		}
		if got := newResolver(osFiles).resolve(root + path); got.path != want || !got.exists || got.err != nil {
			t.Errorf("%s leads to %s, want %s", path, got.path, want)
		}
	}
}

func TestResolve_UnsearchableDirectoryIsAnError(t *testing.T) {
	t.Parallel()
	f := tree(t, map[string]string{"/a/": ""})
	lstat := f.lstat
	f.lstat = func(path string) (os.FileMode, error) {
		if strings.HasPrefix(path, "/a/") {
			return 0, os.ErrPermission
		}
		return lstat(path)
	}
	if got := newResolver(f).resolve("/a/b/c"); got.path != "/a/b/c" || got.exists ||
		!errors.Is(got.err, os.ErrPermission) {
		t.Errorf("%+v", got)
	}
}
