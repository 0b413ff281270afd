package denials

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// fixture is a directory with a part that the policy grants and a part that it
// does not, and an observer.
type fixture struct {
	*Observer
	t    *testing.T
	top  string
	root int
}

func newFixture(t *testing.T) *fixture {
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
		t.Fatalf("%s is not on a local file system (%v), so the fast path does not apply: set TMPDIR", top, err)
	} else {
		unix.Close(fd)
	}
	root, err := unix.Open("/", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(root) })
	o := New(Options{Policy: &policy.Policy{Rules: []policy.Rule{{
		Path:   top + "/rw",
		Access: policy.ReadWrite | policy.Execute,
	}}}})
	t.Cleanup(o.Close)
	o.holdRoot(root)
	f := &fixture{Observer: o, t: t, top: top, root: root}
	f.rememberPath("rw/file", false) // so that the file system is known to be local
	return f
}

// rememberPath resolves a path as the slow path does.
func (f *fixture) rememberPath(name string, follow bool) {
	f.t.Helper()
	loc, err := resolve(f.root, f.top+"/"+name, follow)
	if err != nil {
		f.t.Fatal(err)
	}
	defer loc.close()
	loc.name = f.top + "/" + name
	f.remember(f.root, request{follow: follow}, loc, time.Now())
}

// continues reports whether the fast path lets a call continue. False says
// little: while any process of the machine mounts something, or makes a mount
// namespace, the kernel may answer that it cannot tell from its memory (EAGAIN).
func (f *fixture) continues(op operation, flags openFlags, name string) bool {
	request := newRequest(op, flags)
	path := f.top + "/" + name
	if request.follow {
		path = f.resolved(path)
	}
	return f.harmless(literalPath{request: request, name: path})
}

// mustContinue waits until the fast path lets a call continue.
func (f *fixture) mustContinue(op operation, flags openFlags, name string) {
	f.t.Helper()
	harness.Eventually(f.t, fmt.Sprintf("%d %#x of %s continues on the fast path", op, flags, name), func() bool {
		return f.continues(op, flags, name)
	})
}

func (f *fixture) link(target, name string) {
	f.t.Helper()
	next := filepath.Join(f.top, "next")
	if err := os.Symlink(target, next); err != nil {
		f.t.Fatal(err)
	}
	if err := os.Rename(next, filepath.Join(f.top, name)); err != nil {
		f.t.Fatal(err)
	}
}

func TestHarmless_CannotBeDenied(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.link("../out", "rw/to-out")
	f.link("../../out/file", "rw/dir/to-file")
	f.link("../../out/new", "rw/dir/dangling")
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
		if test.want {
			f.mustContinue(test.op, test.flags, test.name)
		} else if f.continues(test.op, test.flags, test.name) {
			t.Errorf("%d %#x of %s continues on the fast path", test.op, test.flags, test.name)
		}
	}
}

// The fast path must not trust what earlier calls saw of a directory.
func TestHarmless_ChecksDirectoriesEveryTime(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.mustContinue(opOpen, unix.O_RDONLY, "rw/dir/file")
	f.mustContinue(opCreate, 0, "rw/dir/new")
	if err := os.RemoveAll(filepath.Join(f.top, "rw/dir")); err != nil {
		t.Fatal(err)
	}
	f.link("../out/dir", "rw/dir")
	if f.continues(opOpen, unix.O_RDONLY, "rw/dir/file") || f.continues(opCreate, 0, "rw/dir/new") {
		t.Error("the fast path trusts a directory that has become a symlink")
	}
}

func TestResolved_HoldsUntilTheSessionMovesASymlink(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.link("dir", "rw/link")
	if f.continues(opOpen, unix.O_RDONLY, "rw/link/file") {
		t.Fatal("the fast path follows an unknown symlink")
	}
	f.rememberPath("rw/link/file", true)
	f.mustContinue(opOpen, unix.O_RDONLY, "rw/link/file")
	f.rememberPath("rw/link/../file", true)
	if got := f.resolved(f.top + "/rw/file"); got != f.top+"/rw/file" {
		t.Errorf("a path with a symlink and .. resolves to %s", got)
	}
	f.forget(time.Now()) // as calls in linkMoving make it do
	f.rememberPath("rw/link/file", true)
	if f.continues(opOpen, unix.O_RDONLY, "rw/link/file") {
		t.Error("the target of a symlink was cached while a call moved it")
	}
	f.forget(time.Now().Add(-2 * settleTime))
	f.link("../out/dir", "rw/link")
	if f.continues(opOpen, unix.O_RDONLY, "rw/link/file") {
		t.Error("the fast path trusts a symlink that has changed")
	}
}

func TestRemember_IsBounded(t *testing.T) {
	t.Parallel()
	m := map[int]bool{}
	for i := range 3 * maxRemembered {
		withRoom(m)[i] = true
		if len(m) > maxRemembered {
			t.Fatalf("%d entries are cached", len(m))
		}
	}
}
