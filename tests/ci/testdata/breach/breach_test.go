// Package breach has tests that find a broken promise, for the tests of tests/ci.
package breach

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

func TestOnce(t *testing.T) {
	file, err := os.OpenFile(filepath.Join(os.Getenv("SAMPLE"), "once"), os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return // the second time
	}
	file.Close()
	harness.Breach(t, "the attack works\nwith more lines")
}

func TestThenHangs(t *testing.T) {
	harness.Breach(t, "the attack works")
	time.Sleep(time.Hour)
}
