package denials

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

func TestResolve_FindsTheTarget(t *testing.T) {
	t.Parallel()
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"root/dir/sub", "root/other", "beside"} {
		if err := os.MkdirAll(filepath.Join(top, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(top, "root/dir/file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, target := range map[string]string{
		"root/link": "dir", "root/to-file": "dir/file", "root/absolute": "/dir/file", "root/dangling": "other/new",
		"root/dir/up": "../other/../none",
		"root/loop":   "loop", "root/out": "../../beside", "root/chain": "dangling", "root/magic": "/proc/self/fd/0",
	} {
		if err := os.Symlink(target, filepath.Join(top, name)); err != nil {
			t.Fatal(err)
		}
	}
	root, err := unix.Open(filepath.Join(top, "root"), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(root)
	for _, test := range []struct {
		name     string
		noFollow bool
		want     string // below the root
		missing  bool
		err      unix.Errno
	}{
		{name: "/dir/file", want: "/dir/file"},
		{name: "/dir/", want: "/dir"},
		{name: "/dir/sub/../file", want: "/dir/file"},
		{name: "/link/../dir/file", want: "/dir/file"},
		{name: "/link/sub/..//file", want: "/dir/file"},
		{name: "/to-file", want: "/dir/file"},
		{name: "/to-file", noFollow: true, want: "/to-file"},
		{name: "/absolute", want: "/dir/file"},
		{name: "/../../dir/file", want: "/dir/file"},
		{name: "/out", want: "", missing: false, err: unix.ENOENT}, // below the root there is no such directory
		{name: "/dir/new", want: "/dir/new", missing: true},
		{name: "/dir/new/", want: "/dir/new", missing: true},
		{name: "/link/new", want: "/dir/new", missing: true},
		{name: "/dangling", want: "/other/new", missing: true},
		{name: "/chain", want: "/other/new", missing: true},
		{name: "/dangling", noFollow: true, want: "/dangling"},
		{name: "/dir/up", want: "/none", missing: true},
		{name: "/none/new", err: unix.ENOENT},
		{name: "/dir/file/new", err: unix.ENOTDIR},
		{name: "/loop", err: unix.ELOOP},
		{name: "/dir/..", want: ""},
	} {
		got, err := resolve(root, test.name, !test.noFollow)
		if test.name == "/out" { // a root keeps ".." inside, so the link's target is a name in the root
			if err != nil || got.path != filepath.Join(top, "root/beside") || got.exists() {
				t.Errorf("%s: %+v, %v", test.name, got, err)
			}
			got.close()
			continue
		}
		if test.err != 0 {
			if !errors.Is(err, test.err) {
				t.Errorf("%s: %+v, %v, want %v", test.name, got, err, test.err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", test.name, err)
			continue
		}
		if want := filepath.Join(top, "root", test.want); got.path != want || got.exists() == test.missing ||
			got.parentPath != filepath.Dir(want) {
			t.Errorf("%s: %+v, want %s", test.name, got, want)
		}
		if err := got.openParent(root); test.missing && (err != nil || got.parent < 0) {
			t.Errorf("%s: its directory: %v", test.name, err)
		}
		got.close()
	}
}
