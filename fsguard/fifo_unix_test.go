//go:build unix

package fsguard

import (
	"errors"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/sandbox-sidecar/sandbox-sidecar/tests/deadline"
)

// Nobody waits for a writer of a FIFO that is in the place of a directory.
func TestReadDir_DoesNotWaitForAFIFO(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "fifo")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() {
		_, err := ReadDir(path, 0)
		done <- err
	}()
	select {
	case err := <-done:
		if !errors.Is(err, syscall.ENOTDIR) {
			t.Errorf("%v", err)
		}
	case <-deadline.After(time.Minute):
		t.Error("it waits")
	}
}
