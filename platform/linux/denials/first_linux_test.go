package denials

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
)

// TestDoubtful_LetsOnlyThroughWhatCannotBeRefused judges paths as they are written, from a root of the test's own.
func TestDoubtful_LetsOnlyThroughWhatCannotBeRefused(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	for _, dir := range []string{"rw/dir", "out"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, file := range []string{"rw/dir/file", "out/file"} {
		if err := os.WriteFile(filepath.Join(root, file), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, target := range map[string]string{"rw/to-out": "../out", "rw/dir/to-file": "../../out/file", "rw/dir/dangling": "../../out/new"} {
		if err := os.Symlink(target, filepath.Join(root, name)); err != nil {
			t.Fatal(err)
		}
	}
	fd, err := unix.Open(root, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	if !isLocal(fd) {
		t.Fatalf("%s is on a file system that is not this machine's own, where no path is judged so: set TMPDIR", root)
	}
	for _, test := range []struct {
		deed  deed
		flags openFlags
		path  string
		doubt bool
	}{
		{opening, unix.O_RDONLY, "/rw/dir/file", false},
		{opening, unix.O_RDONLY, "/rw/dir/none", false},
		{opening, unix.O_RDONLY, "/rw/none/deep/file", false},
		{opening, unix.O_WRONLY | unix.O_CREAT, "/rw/dir/new", false},
		{opening, unix.O_WRONLY | unix.O_CREAT | unix.O_EXCL, "/rw/dir/new", false},
		{removing, 0, "/rw/dir/file", false},
		{removing, 0, "/rw/dir/to-file", false}, // the link itself
		{opening, unix.O_RDONLY, "/rw/dir/to-file", true},
		{opening, unix.O_WRONLY | unix.O_CREAT, "/rw/dir/dangling", true},
		{opening, unix.O_RDONLY, "/rw/to-out/file", true},
		{removing, 0, "/rw/to-out/file", true},
		{opening, unix.O_RDONLY, "/out/file", true},
		{opening, unix.O_RDONLY, "/out/none", false},
		{opening, unix.O_RDONLY, "/out/none/deep", false},
		{executing, 0, "/out/file", true},
		{executing, 0, "/out/none", false},
		{removing, 0, "/out/file", true},
		{removing, 0, "/out/none", false},
	} {
		// Twice: the second time the directory is known.
		o := New(Options{Policy: &policy.Policy{Rules: []policy.Rule{{Path: "/rw", Access: policy.ReadWrite | policy.Execute}}}})
		o.hold(fd)
		for _, round := range []string{"new", "known"} {
			wish := want(test.deed, test.flags)
			w := written{wish: wish, name: test.path, granted: o.grants(wish, test.path)}
			if !w.granted && w.makes() {
				t.Errorf("%+v: nothing but a look can tell", test)
			}
			if got := o.doubtful([]written{w}); got != test.doubt {
				t.Errorf("%d %#x %s, directory %s: doubtful is %t", test.deed, test.flags, test.path, round, got)
			}
		}
		o.Close()
	}
}

// TestExplore_RemembersABoundedNumber fills what is remembered; the root stays known, without which nothing could be explored any more.
func TestExplore_RemembersABoundedNumber(t *testing.T) {
	t.Parallel()
	o := New(Options{Policy: &policy.Policy{}})
	o.plain["/"] = true
	for i := range 3 * mostPlain {
		o.note(filepath.Join("/", "d", string(rune('a'+i%26)), filepath.Base(t.Name()), string(rune(0x4e00+i))), true)
		if len(o.plain) > mostPlain+1 {
			t.Fatalf("%d directories are remembered", len(o.plain))
		}
	}
	if !o.plain["/"] {
		t.Error("the root is forgotten")
	}
}

// TestUnlinked_KnowsWhereDirectoriesLead has a place looked up as a call's is, and asks for a path like it afterwards.
func TestUnlinked_KnowsWhereDirectoriesLead(t *testing.T) {
	t.Parallel()
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(top, "real", "sub"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, target := range map[string]string{"link": "real", "real/last": "sub", "sub": "real/sub"} {
		if err := os.Symlink(target, filepath.Join(top, name)); err != nil {
			t.Fatal(err)
		}
	}
	root, err := unix.Open("/", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(root)
	for _, test := range []struct{ looked, asked, want string }{
		{"link/sub", "link/new", "real/new"},
		{"link/../real/sub", "link/new", "link/new"},
		{"real/sub", "real/new", "real/new"},
		{"real/last", "real/new", "real/new"}, // the last name alone is a link
		{"sub", "new", "new"},                 // to a name like its own
	} {
		o := New(Options{Policy: &policy.Policy{}})
		there, err := walk(root, top+"/"+test.looked, true)
		if err != nil {
			t.Fatal(err)
		}
		there.name = top + "/" + test.looked
		o.remember(root, there)
		there.close()
		if got, want := o.unlinked(filepath.Join(top, test.asked)), filepath.Join(top, test.want); got != want {
			t.Errorf("after %s %s is %s, want %s", test.looked, test.asked, got, want)
		}
	}
}
