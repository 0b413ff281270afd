package spawn

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// On Linux the poller takes no regular file.
func TestPolled_RefusesWhatThePollerDoesNotTake(t *testing.T) {
	t.Parallel()
	file, err := os.Create(filepath.Join(t.TempDir(), "file"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if other, err := polled(file); !errors.Is(err, os.ErrNoDeadline) {
		t.Errorf("%v, %v", other, err)
	}
}
