package namespace

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// A proof of a protection must fail if the protection is not there.
func TestProofs_FailIfNothingIsMounted(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(dir+"/file", nil, 0o400); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(dir+"/closed", 0o500); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{dir, dir + "/file", dir + "/closed"} {
		if err := proveReadOnly(path); err == nil {
			t.Errorf("%s counts as read-only", path)
		}
	}
	if err := proveReadOnly(dir + "/gone"); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	if err := provePinned(dir); !errors.Is(err, errNotPinned) {
		t.Error(err)
	}
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	if err := provePinned(link); !isAbsent(err) {
		t.Errorf("a symlink: %v", err)
	}
	if err := provePinned("/proc"); err != nil {
		t.Errorf("/proc is a mount everywhere: %v", err)
	}
	if err := proveReadOnly("/proc/self/status"); errors.Is(err, unix.EROFS) {
		t.Error("a file of /proc counts as read-only, or /proc is mounted read-only")
	}
}

func TestOpenPlain_FollowsNoSymlink(t *testing.T) {
	t.Parallel()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(dir, dir+"/link"); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]error{dir + "/link": unix.ELOOP, dir + "/link/x": unix.ELOOP, dir +
		"/gone": unix.ENOENT, dir: nil} {
		fd, err := openPlain(path)
		if !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", path, err, want)
		}
		if err == nil {
			unix.Close(fd)
		}
	}
}

// The machine's network must not pass as the session's own.
func TestProveIsolated_FailsOnTheMachinesOwnNetwork(t *testing.T) {
	t.Parallel()
	interfaces, err := net.Interfaces()
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(interfaces, func(i net.Interface) bool {
		return i.Flags&(net.FlagUp|net.FlagLoopback) == net.FlagUp
	}) {
		harness.Skip(t, "network_interface", "there is nothing but a loopback interface")
	}
	if err := ProveIsolated(); err == nil {
		t.Error("it counts as a network without a way out")
	}
}
