package review

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

// asOrdinaryUser makes the test an ordinary user to the file system, and the
// owner of a directory of its own: root reads every directory.
func asOrdinaryUser(t *testing.T, dir string) {
	t.Helper()
	if os.Geteuid() != 0 {
		return
	}
	const nobody = 65534
	for _, dir := range []string{filepath.Dir(dir), dir} {
		if err := os.Chown(dir, nobody, nobody); err != nil {
			t.Fatal(err)
		}
	}
	runtime.LockOSThread() // the thread ends with the test: its identity is no other goroutine's
	if err := unix.Setfsuid(nobody); err != nil {
		t.Fatal(err)
	}
	// The directory above is not that user's: only root can remove this one.
	t.Cleanup(func() { _ = unix.Setfsuid(0) })
}
