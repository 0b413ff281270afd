package sockets

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/linux/canary"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// The socket counts, not the name that leads to it.
func TestConnect_NamesDoNotMatter(t *testing.T) {
	t.Parallel()
	s := newStage(t, func(dir string) Grants { return Grants{Paths: []string{dir + "/granted"}} }, nil)
	s.inside(s.path("in"))
	out := s.path("out")
	s.outside(out)
	s.outside(s.path("granted"))
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(os.Mkdir(s.path("dir"), 0o700))
	must(os.Symlink(out, s.path("soft")))
	must(os.Symlink("../in", s.path("dir/soft-in")))
	must(os.Symlink(s.dir, s.path("here")))
	must(os.Link(out, s.path("hard")))
	must(os.Link(s.path("in"), s.path("hard-in")))
	must(os.Link(s.path("granted"), s.path("hard-granted")))
	s.expect(s.path("soft"), unix.EACCES)
	s.expect(s.path("hard"), unix.EACCES)
	s.expect(s.path("here/out"), unix.EACCES)
	s.expect(s.path("dir/../out"), unix.EACCES)
	s.expect(s.path("dir/soft-in"), nil)
	s.expect(s.path("hard-in"), nil)
	s.expect(s.path("here/granted"), nil)
	s.expect(s.path("hard-granted"), unix.EACCES) // only the path is granted
	must(os.Rename(out, s.path("renamed")))
	s.expect(s.path("renamed"), unix.EACCES)
	must(os.Rename(s.path("in"), s.path("renamed-in")))
	s.expect(s.path("renamed-in"), nil)
	// A granted path is granted for any socket. The grant requires that no
	// session can put one there.
	must(os.Rename(s.path("renamed"), s.path("granted")))
	s.expect(s.path("granted"), nil)
	for _, magic := range []string{"/proc/self/root" + s.path("hard-in"), "/proc/thread-self/cwd"} {
		s.expect(magic, unix.ELOOP)
	}
}

func TestConnect_StaleSocketsAnswerAsUsual(t *testing.T) {
	t.Parallel()
	s := newStage(t, noGrants, nil)
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	listen(t, fd, s.path("stale"))
	unix.Close(fd)
	s.expect(s.path("stale"), unix.ECONNREFUSED)
	bound := socket(t, unix.SOCK_STREAM)
	s.Do(func() {
		if err := unix.Bind(bound, &unix.SockaddrUnix{Name: s.path("bound")}); err != nil {
			t.Error(err)
		}
	})
	s.expect(s.path("bound"), unix.ECONNREFUSED) // it does not listen
}

func TestConnect_FollowsTheCallersDirectory(t *testing.T) {
	t.Parallel()
	s := newStage(t, noGrants, func() *os.File {
		if err := unix.Unshare(unix.CLONE_FS); err != nil { // for a directory of the thread's own
			t.Error(err)
		}
		return nil
	})
	for _, dir := range []string{"a", "a/b"} {
		if err := os.Mkdir(s.path(dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	s.inside(s.path("a/in"))
	s.outside(s.path("a/out"))
	if err := os.Symlink(s.path("a/in"), s.path("a/b/link")); err != nil {
		t.Fatal(err)
	}
	s.Do(func() {
		if err := unix.Chdir(s.path("a/b")); err != nil {
			t.Error(err)
		}
	})
	s.expect("../in", nil)
	s.expect("link", nil)
	s.expect("../out", unix.EACCES)
	s.expect("in", unix.ENOENT)
	s.inside("relative")
	s.expect("relative", nil)
	s.expect(s.path("a/b/relative"), nil)
}

func TestConnect_FollowsTheCallersRoot(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		harness.Skip(t, "root", "the test runs as an ordinary user")
	}
	s := newStage(t, noGrants, nil)
	for _, dir := range []string{"root", "root/d"} {
		if err := os.Mkdir(s.path(dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	s.inside(s.path("root/in"))
	s.outside(s.path("root/out"))
	s.outside(s.path("above"))
	if err := os.Symlink("/in", s.path("root/d/link")); err != nil {
		t.Fatal(err)
	}
	s.Do(func() {
		if err := errors.Join(unix.Unshare(unix.CLONE_FS), unix.Chroot(s.path("root")), unix.Chdir("/d")); err != nil {
			t.Error(err)
		}
	})
	s.expect("/in", nil)
	s.expect("../in", nil)
	s.expect("link", nil)
	s.expect("/d/link", nil)
	s.expect("../out", unix.EACCES)
	s.expect("/../above", unix.ENOENT)
	s.expect(s.path("above"), unix.ENOENT)
}

// On overlayfs stat(2) returns other numbers than sock_diag.
func TestConnect_OnOverlayfs(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		harness.Skip(t, "root", "the test runs as an ordinary user")
	}
	s := newStage(t, noGrants, nil)
	for _, dir := range []string{"lower", "upper", "work", "merged"} {
		if err := os.Mkdir(s.path(dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	var err error
	s.Do(func() {
		if err = unix.Unshare(unix.CLONE_FS | unix.CLONE_NEWNS); err != nil {
			return
		}
		if err = unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
			return
		}
		// Use a tmpfs: the temporary directory's own file system may not allow
		// an upper layer.
		if err = unix.Mount("tmpfs", s.dir, "tmpfs", 0, ""); err != nil {
			return
		}
		for _, dir := range []string{"lower", "upper", "work", "merged"} {
			err = errors.Join(err, unix.Mkdir(s.path(dir), 0o700))
		}
		options := fmt.Sprintf("lowerdir=%s,upperdir=%s,workdir=%s", s.path("lower"), s.path("upper"), s.path("work"))
		err = errors.Join(err, unix.Mount("overlay", s.path("merged"), "overlay", 0, options))
	})
	if err != nil {
		harness.Skip(t, "overlayfs", err.Error())
	}
	in, out := socket(t, unix.SOCK_STREAM), socket(t, unix.SOCK_STREAM)
	s.Do(func() { listen(t, in, s.path("merged/in")) })
	// An outside process: an unsupervised thread in the same mounts.
	foreign := make(chan struct{})
	go func() {
		defer close(foreign)
		runtime.LockOSThread()
		ns, err := unix.Open(fmt.Sprintf("/proc/%d/ns/mnt", s.TID), unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err == nil {
			defer unix.Close(ns)
			err = errors.Join(unix.Unshare(unix.CLONE_FS), unix.Setns(ns, unix.CLONE_NEWNS))
		}
		if err != nil {
			t.Error(err)
			return
		}
		listen(t, out, s.path("merged/out"))
	}()
	<-foreign
	s.expect(s.path("merged/in"), nil)
	s.expect(s.path("merged/out"), unix.EACCES)
}

// With a network namespace for the session, its sockets are listed there, and
// those of outside processes here.
func TestConnect_AcrossNetworkNamespaces(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		harness.Skip(t, "root", "the test runs as an ordinary user")
	}
	s := newStage(t, noGrants, func() *os.File {
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			t.Error(err)
			return nil
		}
		fd, err := canary.OpenDiag()
		if err != nil {
			t.Error(err)
			return nil
		}
		return os.NewFile(uintptr(fd), "diag")
	})
	own := func() (fd int) { // a socket belongs to the namespace of the thread that creates it
		s.Do(func() { fd = socket(t, unix.SOCK_STREAM) })
		return fd
	}
	connect := func(name string) (err error) {
		fd := own()
		s.Do(func() { err = unix.Connect(fd, &unix.SockaddrUnix{Name: name}) })
		return err
	}
	in, inAbstract := own(), own()
	s.Do(func() {
		listen(t, in, s.path("in"))
		listen(t, inAbstract, "@in"+s.dir)
	})
	s.outside(s.path("out"))
	s.outside("@out" + s.dir)
	for name, want := range map[string]error{
		s.path("in"): nil, "@in" + s.dir: nil, s.path("out"): unix.EACCES, "@out" + s.dir: unix.ECONNREFUSED,
	} {
		if got := connect(name); !errors.Is(got, want) {
			t.Errorf("connect to %q: %v, want %v", name, got, want)
		}
	}
	s.expect("@in"+s.dir, unix.EPERM) // by a socket of another namespace
}

// A root session may have processes of other users. The modes of sockets and
// directories still apply to them, and servers see their credentials.
func TestConnect_AsTheCaller(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		harness.Skip(t, "root", "the test runs as an ordinary user")
	}
	const nobody = 65534
	s := newStage(t, noGrants, nil)
	servers := map[string]int{}
	for _, name := range []string{"open", "closed", "dir/open"} {
		if dir := filepath.Dir(s.path(name)); dir != s.dir {
			if err := os.Mkdir(dir, 0o700); err != nil {
				t.Fatal(err)
			}
		}
		fd := socket(t, unix.SOCK_STREAM)
		s.Do(func() { listen(t, fd, s.path(name)) })
		servers[name] = fd
	}
	for path, mode := range map[string]os.FileMode{
		s.dir: 0o755, s.path("open"): 0o777, s.path("closed"): 0o700,
		s.path("dir/open"): 0o777,
	} {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
	}
	s.expect(s.path("closed"), nil) // as root
	s.Do(func() {
		_, _, groups := unix.RawSyscall(unix.SYS_SETGROUPS, 0, 0, 0)
		_, _, gid := unix.RawSyscall(unix.SYS_SETRESGID, nobody, nobody, nobody)
		_, _, uid := unix.RawSyscall(unix.SYS_SETRESUID, nobody, nobody, nobody)
		if groups != 0 || gid != 0 || uid != 0 {
			t.Errorf("become another user: %v, %v, %v", groups, gid, uid)
		}
	})
	s.expect(s.path("closed"), unix.EACCES)
	s.expect(s.path("dir/open"), unix.EACCES)
	s.expect(s.path("open"), nil)
	conn, _, err := unix.Accept(servers["open"])
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(conn)
	if peer, err := unix.GetsockoptUcred(conn, unix.SOL_SOCKET, unix.SO_PEERCRED); err != nil || peer.Uid != nobody ||
		peer.Gid != nobody {
		t.Errorf("the server sees %+v, %v", peer, err)
	}
}
