package denials

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

func openRoot(t *testing.T, path string) int {
	t.Helper()
	root, err := unix.Open(path, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(root) })
	return root
}

func TestHoldDevice_TakesNothingElseForADevice(t *testing.T) {
	t.Parallel()
	root := openRoot(t, "/")
	for path, want := range map[string]uint64{nullPath: nullDevice, ttyPath: ttyDevice} {
		harness.Eventually(t, path+" is held", func() bool { // see continues
			fd, device, err := holdDevice(root, path)
			if err != nil {
				return false
			}
			unix.Close(fd)
			if device != want {
				t.Fatalf("%s is device %#x", path, device)
			}
			return true
		})
	}
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "dev"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(dir+nullPath, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir+nullPath, 0o666); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(nullPath, dir+ttyPath); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{nullPath, ttyPath} {
		if fd, _, err := holdDevice(openRoot(t, dir), path); err == nil {
			unix.Close(fd)
			t.Errorf("%s of another root is taken for a device", path)
		}
	}
}

func TestMayOpenDevice_KnowsTheFlags(t *testing.T) {
	t.Parallel()
	for flags, want := range map[openFlags]bool{
		unix.O_RDWR: true,
		unix.O_WRONLY | unix.O_CREAT | unix.O_TRUNC:    true,
		unix.O_RDWR | unix.O_NONBLOCK | unix.O_CLOEXEC: true,
		unix.O_RDONLY:                              false,
		unix.O_RDWR | unix.O_PATH:                  false,
		unix.O_WRONLY | unix.O_CREAT | unix.O_EXCL: false,
		unix.O_RDWR | unix.O_TMPFILE:               false,
		unix.O_WRONLY | unix.O_DIRECTORY:           false,
	} {
		if got := mayOpenDevice(flags); got != want {
			t.Errorf("%#x: %v", uint64(flags), got)
		}
	}
}
