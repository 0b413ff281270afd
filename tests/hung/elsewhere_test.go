//go:build !linux

package hung

import (
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

func TestHung_NeedsLinux(t *testing.T) {
	harness.Skip(t, "fuse", "these tests mount a FUSE file system as Linux does it")
}
