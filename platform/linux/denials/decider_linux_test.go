package denials

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/linux/notify"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// testCalls are the calls that the tests number themselves, in this order.
var testCalls = []string{
	"open", "openat", "creat", "unlink", "unlinkat", "rmdir", "mkdir", "mkdirat", "mknod", "mknodat", "truncate",
	"execve", "execveat", "symlink", "renameat", "link", "openat2",
}

func newDecider(f *fixture) *Decider {
	numbers := map[int]string{}
	for i, call := range testCalls {
		numbers[i] = call
	}
	f.start()
	d := NewDecider(f.Observer, NewDecidedCalls(1, numbers, nil))
	d.Begin()
	return d
}

// page returns the address of a text that ends where the mapped memory does.
func page(t *testing.T, text string) uint64 {
	t.Helper()
	size := os.Getpagesize()
	memory, err := unix.Mmap(-1, 0, 2*size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Munmap(memory) })
	if err := unix.Mprotect(memory[size:], unix.PROT_NONE); err != nil {
		t.Fatal(err)
	}
	start := size - len(text) - 1
	copy(memory[start:size], text)
	return uint64(uintptr(unsafe.Pointer(&memory[start])))
}

// What Decider and FastPath let continue creates no protected name, and SlowPath
// does not report it. They may leave different calls to SlowPath: each asks the
// kernel for itself, and the kernel cannot answer from its memory while any
// process of the machine mounts something.
func TestDecider_AgreesWithFastPathAndSlowPath(t *testing.T) {
	f := newFixture(t)
	f.options.Policy.Protected = []policy.Protected{{Path: f.top + "/rw/protected"}}
	f.options.Policy.Replaced = []policy.Replaced{{Path: f.top + "/rw/replaced", Source: f.top + "/out/dir"}}
	f.options.Policy.Hidden = []policy.Hidden{{Path: f.top + "/rw/hidden"}}
	f.options.Policy.Temporary = []policy.Temporary{{Path: f.top + "/rw"}}
	f.options.Policy.Rules = append(f.options.Policy.Rules, policy.Rule{Path: f.top + "/rw/back", Access: policy.Read})
	for _, dir := range []string{"rw/protected", "rw/gone", "rw/dir/deep/er", "rw/hidden", "rw/back", "rw/replaced"} {
		if err := os.MkdirAll(filepath.Join(f.top, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	f.link("../out", "rw/to-out")
	f.link("dir", "rw/to-dir")
	f.link("../../out/file", "rw/dir/to-file")
	f.link("file", "rw/to-own-file")
	f.link("../out/new", "rw/dangling")
	f.link(f.top+"/rw", "out/to-rw")
	list := []policy.Protected{
		{Path: f.top + "/rw/.mcp.json"}, {Path: f.top + "/rw/none2/deep"}, {Path: f.top + "/rw/*.ws", Pattern: true},
	}
	f.options.Policy.Protected = append(f.options.Policy.Protected, list...)
	f.options.Policy.Protected = append(f.options.Policy.Protected,
		policy.Protected{Path: f.top + "/rw/dir/creatable", Creatable: true})
	f.missing = missingNames(list, f.options.Policy)
	d := newDecider(f)
	var dirs []int
	for _, dir := range []string{"rw", "rw/dir", "rw/protected", "rw/gone", "out", "out/dir", "rw/to-out", "rw/file"} {
		fd, err := unix.Open(filepath.Join(f.top, dir), unix.O_PATH|unix.O_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { unix.Close(fd) })
		dirs = append(dirs, fd)
	}
	if err := os.Remove(filepath.Join(f.top, "rw/gone")); err != nil {
		t.Fatal(err)
	}
	names := []string{
		".mcp.json", "dir/../.mcp.json", "dir/.mcp.json", "none2", "none2/deep", "x.ws", ".ws", "x.ws/", "x.wss",
		"file", "new", "dir", "dir/file", "dir/new", "dir/deep/er/new", "none/new", "protected", "protected/new",
		"hidden", "hidden/new", "back", "back/new", "back/../new", "replaced/new",
		"to-out", "to-out/file", "to-out/new", "to-dir/file", "dir/to-file", "to-file", "to-own-file", "dangling",
		"to-rw/file", "to-rw/new", "", ".", "..", "./file", "dir/./file", "../rw/file", "../out/file", "../out/new",
		"dir/", "dir//file", "dir/..", "file/new", "...", ".hidden", "..hidden/new",
		strings.Repeat("n", 255), strings.Repeat("n/", 700),
		"/", "//", "/none", "/proc/self/comm", "/dev/null",
	}
	for _, name := range names[:len(names)-5] {
		for _, dir := range []string{"/", "/rw/", "/rw/dir/", "/out/", "/rw/to-out/", "/rw/../rw/", "/rw//"} {
			names = append(names, f.top+dir+name)
		}
	}
	flags := []uint64{
		unix.O_RDONLY, unix.O_WRONLY, unix.O_RDWR, unix.O_RDONLY | unix.O_CREAT, unix.O_WRONLY | unix.O_CREAT,
		unix.O_WRONLY | unix.O_CREAT | unix.O_EXCL, unix.O_RDONLY | unix.O_TRUNC, unix.O_RDONLY | unix.O_NOFOLLOW,
		unix.O_WRONLY | unix.O_NOFOLLOW, unix.O_PATH, unix.O_TMPFILE | unix.O_RDWR, unix.O_RDONLY | unix.O_DIRECTORY,
		unix.AT_SYMLINK_NOFOLLOW, unix.AT_EMPTY_PATH,
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	tid := unix.Gettid()
	decided, refused, left := 0, 0, 0
	for _, name := range names {
		address := page(t, name)
		for number, call := range testCalls {
			for _, u := range pathArgs()[call][:1] {
				for _, dir := range append([]int{unix.AT_FDCWD, -1, 12345}, dirs...) {
					for _, flag := range flags {
						c := &notify.Call{TID: tid, Number: number, Arch: 1}
						c.Args[u.path] = address
						if u.dir != workDir {
							c.Args[u.dir] = uint64(dir)
						}
						if dir != unix.AT_FDCWD && (u.dir == workDir || strings.HasPrefix(name, "/")) {
							continue
						}
						if u.flags != none {
							c.Args[u.flags] = flag
						} else if flag != 0 {
							continue
						}
						n := &notify.Notification{TID: uint32(tid), Number: int32(number), Arch: 1, Args: c.Args}
						continues := d.Decide(n)
						if len(pathArgs()[call]) > 1 || slices.Contains(linkMoving, call) || call == "openat2" {
							if continues {
								t.Errorf("%s of %q is decided", call, name)
							}
							continue
						}
						if p := f.options.Policy; continues && strings.HasPrefix(name, "/") && flag&unix.O_PATH == 0 {
							// Either the policy grants it, or nothing exists there.
							at, _ := needs(u.op, openFlags(flag))
							if _, err := os.Lstat(name); err == nil && !p.At(filepath.Clean(name)).Has(at) {
								t.Errorf("%s of %q with %#x is decided", call, name, flag)
							}
						}
						w, readable := f.literalPath(c, call, u)
						fast := readable &&
							(w.name == "" || !f.missing.concerns(w.request, w.name) && f.harmless(w))
						if made, ok, err := f.creation(c, call, u); ok && err == nil && (continues || fast) {
							if target, err := f.createsMissing(c, f.root, made); target != "" || err != nil {
								t.Errorf("%s of %q in %d continues, and creates %s, %v", call, name, dir, target, err)
							}
						}
						found, _ := f.inspect(c, f.root, true, call, u)
						if found != nil {
							found.loc.close()
							refused++
						}
						switch {
						case (continues || fast) && found != nil:
							t.Errorf("%s of %q in %d with %#x is refused, and continues: decided %t, by the fast path %t",
								call, name, dir, flag, continues, fast)
						case continues:
							decided++
						case fast:
							left++
						}
					}
				}
			}
		}
	}
	t.Logf("%d calls decided, %d left to the fast path, %d refused", decided, left, refused)
	if decided < 1000 || refused < 1000 {
		t.Errorf("only %d calls were decided and %d refused", decided, refused)
	}
}

// Nothing is there inside below a hidden directory. Only the slow path knows what
// is there outside.
func TestDecider_LeavesHiddenPathsToTheSlowPath(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.options.Policy.Hidden = []policy.Hidden{{Path: f.top + "/out/hidden"}}
	for _, dir := range []string{"out/hidden", "out/seen"} {
		if err := os.MkdirAll(filepath.Join(f.top, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	d := newDecider(f)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for name, hidden := range map[string]bool{f.top + "/out/hidden/none": true, f.top + "/out/seen/none": false} {
		_, _ = os.Lstat(name) // so the kernel knows that it is missing
		n := &notify.Notification{TID: uint32(unix.Gettid()), Number: 0, Arch: 1}
		n.Args[0] = page(t, name)
		c := &notify.Call{TID: unix.Gettid(), Number: 0, Arch: 1, Args: n.Args}
		w, readable := f.literalPath(c, "open", pathArgs()["open"][0])
		decided, fast := func() bool { return d.Decide(n) }, func() bool { return readable && f.harmless(w) }
		switch {
		case !hidden:
			harness.Eventually(t, name+" is decided", decided)
			harness.Eventually(t, name+" continues on the fast path", fast)
		case decided() || fast():
			t.Errorf("%s: decided %t, by the fast path %t", name, decided(), fast())
		}
	}
}

func TestDecider_ChecksDirectoriesEveryTime(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	d := newDecider(f)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	n := &notify.Notification{TID: uint32(unix.Gettid()), Number: 0, Arch: 1}
	n.Args[0] = page(t, f.top+"/rw/dir/file")
	harness.Eventually(t, "a granted path is decided", func() bool { return d.Decide(n) })
	if err := os.RemoveAll(filepath.Join(f.top, "rw/dir")); err != nil {
		t.Fatal(err)
	}
	f.link("../out/dir", "rw/dir")
	if d.Decide(n) {
		t.Error("a directory is trusted that has become a symlink")
	}
}

func TestDecider_WaitsForTheTarget(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	d := NewDecider(f.Observer, NewDecidedCalls(1, map[int]string{0: "open"}, nil))
	d.Begin()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	n := &notify.Notification{TID: uint32(unix.Gettid()), Number: 0, Arch: 1}
	n.Args[0] = page(t, f.top+"/rw/dir/file")
	if d.Decide(n) {
		t.Error("a call of the stage is decided")
	}
	f.start()
	for _, other := range []notify.Notification{
		{Number: 0, Arch: 2}, {Number: 1, Arch: 1}, {Number: -1, Arch: 1}, {Number: maxNumber, Arch: 1},
	} {
		other.TID, other.Args = n.TID, n.Args
		if d.Decide(&other) {
			t.Errorf("call %d of architecture %d is decided", other.Number, other.Arch)
		}
	}
	if n.Args[0] = 16; d.Decide(n) {
		t.Error("a path that cannot be read is decided")
	}
}
