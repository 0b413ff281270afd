package resolve_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/settings/resolve"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/resolve/resolvetest"
)

func TestResolve_WalksAsTheKernelDoes(t *testing.T) {
	t.Parallel()
	entries := map[string]string{
		"/a/b/c/": "", "/a/file": "", "/abs": "-> /a/b", "/rel": "-> a/b/c", "/a/up": "-> ..", "/a/b/self": "-> .",
		"/chain": "-> rel/../self",
		"/gone":  "-> nowhere/x", "/loop": "-> loop2", "/loop2": "-> loop", "/slash": "-> a/b/", "/root": "-> /",
	}
	f := resolvetest.Tree(t, entries)
	for path, want := range map[string]string{
		"/": "/", "//a///b/.": "/a/b", "/abs": "/a/b", "/abs/c": "/a/b/c", "/rel/..": "/a/b", "/a/up/a/up": "/",
		"/chain/c":         "/a/b/c",
		"/a/b/self/self/c": "/a/b/c", "/..": "/", "/../../a": "/a", "/slash": "/a/b", "/gone": "/nowhere/x",
		"/no/such":   "/no/such",
		"/no/../rel": "/a/b/c", "/no/such/../../abs/x": "/a/b/x", "/a/file/x": "/a/file/x", "/root/a": "/a",
		"/root/../rel": "/a/b/c",
	} {
		got := resolve.NewView(f).Resolve(path)
		if got.Path != want || got.Err != nil {
			t.Errorf("%s leads to %s (%v), want %s", path, got.Path, got.Err, want)
		}
		if _, err := f.Lstat(got.Path); got.Exists != (err == nil) {
			t.Errorf("%s: exists %t, but %v", path, got.Exists, err)
		}
	}
	if got := resolve.NewView(f).Resolve("/loop"); !errors.Is(got.Err, resolve.ErrTooManyLinks) {
		t.Errorf("a loop: %v", got.Err)
	}
	crossed := resolve.NewView(f).Resolve("/chain/c").Links
	var names []string
	for _, l := range crossed {
		names = append(names, l.Path+" in "+l.Dir)
	}
	if got := strings.Join(names, ", "); got != "/chain in /, /rel in /, /a/b/self in /a/b" {
		t.Errorf("crossed %s", got)
	}
}

// On the real file system the walk agrees with the kernel.
// A view is of one moment: all parts of an evaluation see the same. The next
// view sees what has changed.
func TestView_KeepsWhatItSaw(t *testing.T) {
	t.Parallel()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(dir, "name")
	view := resolve.NewView(resolve.OS)
	if view.Resolve(name).Exists {
		t.Fatal("it exists")
	}
	if err := os.Symlink("/", name); err != nil {
		t.Fatal(err)
	}
	if got := view.Resolve(name); got.Exists || got.Path != name {
		t.Errorf("the same view sees %+v", got)
	}
	if got := resolve.NewView(resolve.OS).Resolve(name); !got.Exists || got.Path != "/" {
		t.Errorf("the next view sees %+v", got)
	}
}

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
		if got := resolve.NewView(resolve.OS).Resolve(root + path); got.Path != want || !got.Exists || got.Err != nil {
			t.Errorf("%s leads to %s, want %s", path, got.Path, want)
		}
	}
}

func TestResolve_UnsearchableDirectoryIsAnError(t *testing.T) {
	t.Parallel()
	f := resolvetest.Tree(t, map[string]string{"/a/": ""})
	lstat := f.Lstat
	f.Lstat = func(path string) (os.FileMode, error) {
		if strings.HasPrefix(path, "/a/") {
			return 0, os.ErrPermission
		}
		return lstat(path)
	}
	if got := resolve.NewView(f).Resolve("/a/b/c"); got.Path != "/a/b/c" || got.Exists ||
		!errors.Is(got.Err, os.ErrPermission) {
		t.Errorf("%+v", got)
	}
}
