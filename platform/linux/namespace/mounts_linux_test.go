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

// What has to be replaced and has become a symlink ends the start: the session
// could read through it. What is gone does not.
func TestTemporary_NeededIsNoSymlink(t *testing.T) {
	t.Parallel()
	dir := realDir(t)
	at := func(name string) string { return filepath.Join(dir, name) }
	harness.Write(t, at("file"), "")
	harness.Must(t, os.Symlink("file", at("link")))
	for _, test := range []struct {
		name             string
		optional, needed bool
		there            bool
		err              error
	}{
		{"file", true, true, true, nil},
		{"link", true, true, false, errLinked},
		{"gone", true, true, false, nil},
		{"link", true, false, false, nil},
		{"link", false, false, false, unix.ELOOP},
		{"gone", false, false, false, unix.ENOENT},
	} {
		place, there, err := TemporaryDir{Path: at(test.name), Optional: test.optional, Needed: test.needed}.open()
		if there != test.there || !errors.Is(err, test.err) {
			t.Errorf("%+v: %t, %v", test, there, err)
		}
		if there {
			unix.Close(place)
		}
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
