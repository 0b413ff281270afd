package denials

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
)

// wood is a directory with a part that a policy grants and one that it does
// not, and who looks at paths in it.
type wood struct {
	*Observer
	t    *testing.T
	top  string
	root int
}

func plant(t *testing.T) *wood {
	t.Helper()
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"rw/dir", "out/dir"} {
		if err := os.MkdirAll(filepath.Join(top, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, file := range []string{"rw/dir/file", "rw/file", "out/file", "out/dir/file"} {
		if err := os.WriteFile(filepath.Join(top, file), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if fd, err := unix.Open(top, unix.O_PATH|unix.O_CLOEXEC, 0); err != nil || !isLocal(fd) {
		t.Fatalf("%s is on no file system of this machine's own (%v), where no path is judged at once: set TMPDIR", top, err)
	} else {
		unix.Close(fd)
	}
	root, err := unix.Open("/", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(root) })
	o := New(Options{Policy: &policy.Policy{Rules: []policy.Rule{{Path: top + "/rw",
		Access: policy.ReadWrite | policy.Execute}}}})
	t.Cleanup(o.Close)
	o.holdRoot(root)
	w := &wood{Observer: o, t: t, top: top, root: root}
	w.lookAt("rw/file", false) // so that the file system is known
	return w
}

// lookAt looks as the long way does.
func (w *wood) lookAt(name string, follow bool) {
	w.t.Helper()
	loc, err := resolve(w.root, w.top+"/"+name, follow)
	if err != nil {
		w.t.Fatal(err)
	}
	defer loc.close()
	loc.name = w.top + "/" + name
	w.remember(w.root, request{follow: follow}, loc, time.Now())
}

// letGo reports whether an opening goes on at once.
func (w *wood) letGo(op operation, flags openFlags, name string) bool {
	request := newRequest(op, flags)
	path := w.top + "/" + name
	if request.follow {
		path = w.resolved(path)
	}
	return w.harmless(literalPath{request: request, name: path})
}

func (w *wood) link(target, name string) {
	w.t.Helper()
	next := filepath.Join(w.top, "next")
	if err := os.Symlink(target, next); err != nil {
		w.t.Fatal(err)
	}
	if err := os.Rename(next, filepath.Join(w.top, name)); err != nil {
		w.t.Fatal(err)
	}
}

func TestHarmless_IsWhatCannotBeRefused(t *testing.T) {
	t.Parallel()
	wood := plant(t)
	wood.link("../out", "rw/to-out")
	wood.link("../../out/file", "rw/dir/to-file")
	wood.link("../../out/new", "rw/dir/dangling")
	const reads, makes = unix.O_RDONLY, unix.O_WRONLY | unix.O_CREAT
	for _, test := range []struct {
		op    operation
		flags openFlags
		name  string
		want  bool
	}{
		{opOpen, reads, "rw/dir/file", true},
		{opOpen, reads, "rw/dir/none", true},
		{opOpen, makes, "rw/dir/new", true},
		{opOpen, makes | unix.O_EXCL, "rw/dir/new", true},
		{opCreate, 0, "rw/dir/new", true},
		{opRemove, 0, "rw/dir/file", true},
		{opRemove, 0, "rw/dir/to-file", true}, // the link itself
		{opOpen, reads, "rw/dir/to-file", false},
		{opOpen, makes, "rw/dir/dangling", false},
		{opOpen, reads, "rw/to-out/file", false},
		{opCreate, 0, "rw/to-out/new", false},
		{opRemove, 0, "rw/to-out/file", false},
		{opOpen, reads, "out/file", false},
		{opOpen, reads, "out/none", true},
		{opOpen, makes, "out/new", false},
		{opOpen, unix.O_WRONLY, "out/none", true},
		{opCreate, 0, "out/new", false},
		{opLink, 0, "out/new", false},
		{opExecute, 0, "out/file", false},
		{opExecute, 0, "out/none", true},
		{opRemove, 0, "out/file", false},
		{opRemove, 0, "out/none", true},
	} {
		if got := wood.letGo(test.op, test.flags, test.name); got != test.want {
			t.Errorf("%d %#x %s: goes on at once: %t", test.op, test.flags, test.name, got)
		}
	}
}

// What was so once is not believed of later calls.
func TestHarmless_KnowsNoDirectoryThatWas(t *testing.T) {
	t.Parallel()
	wood := plant(t)
	if !wood.letGo(opOpen, unix.O_RDONLY, "rw/dir/file") || !wood.letGo(opCreate, 0, "rw/dir/new") {
		t.Fatal("what is granted does not go on at once")
	}
	if err := os.RemoveAll(filepath.Join(wood.top, "rw/dir")); err != nil {
		t.Fatal(err)
	}
	wood.link("../out/dir", "rw/dir")
	if wood.letGo(opOpen, unix.O_RDONLY, "rw/dir/file") || wood.letGo(opCreate, 0, "rw/dir/new") {
		t.Error("a directory that has become a symlink is taken for what it was")
	}
}

func TestLeading_HoldsUntilTheSessionMovesALink(t *testing.T) {
	t.Parallel()
	wood := plant(t)
	wood.link("dir", "rw/link")
	if wood.letGo(opOpen, unix.O_RDONLY, "rw/link/file") {
		t.Fatal("it is not known yet where the link leads")
	}
	wood.lookAt("rw/link/file", true)
	if !wood.letGo(opOpen, unix.O_RDONLY, "rw/link/file") {
		t.Error("it is known where the link leads, and the path goes the long way")
	}
	wood.lookAt("rw/link/../file", true)
	if got := wood.resolved(wood.top + "/rw/file"); got != wood.top+"/rw/file" {
		t.Errorf("what stands behind a link and .. is taken for %s", got)
	}
	wood.forget(time.Now()) // as calls in linkMoving make it do
	wood.lookAt("rw/link/file", true)
	if wood.letGo(opOpen, unix.O_RDONLY, "rw/link/file") {
		t.Error("what a link led to while a call moved it is remembered")
	}
	wood.forget(time.Now().Add(-2 * settleTime))
	wood.link("../out/dir", "rw/link")
	if wood.letGo(opOpen, unix.O_RDONLY, "rw/link/file") {
		t.Error("a link that leads elsewhere is taken for what it was")
	}
}

func TestRemember_IsBounded(t *testing.T) {
	t.Parallel()
	m := map[int]bool{}
	for i := range 3 * maxRemembered {
		withRoom(m)[i] = true
		if len(m) > maxRemembered {
			t.Fatalf("%d are remembered", len(m))
		}
	}
}
