//go:build unix

package audit

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A lock that somebody holds does not keep the helper of a remote file system.
func TestTrail_WaitsForALockOnlySoLong(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "audit")
	holder, err := openDirectory(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer holder.close()
	release, err := holder.hold(unix.LOCK_SH)
	if err != nil {
		t.Fatal(err)
	}
	d, err := openDirectory(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer d.close()
	d.patience = 20 * time.Millisecond
	if err := d.write([]byte("lost\n")); !errors.Is(err, errHeld) {
		t.Errorf("while the lock is held: %v", err)
	}
	release()
	if _, err := appendLine(dir, []byte("written\n")); err != nil {
		t.Errorf("when it is free: %v", err)
	}
	if got, err := os.ReadFile(filepath.Join(dir, current)); string(got) != "written\n" {
		t.Errorf("the file has %q, %v", got, err)
	}
}
