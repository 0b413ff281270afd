//go:build !linux

package ordinary

import (
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

func TestOrdinaryWork_NeedsLinux(t *testing.T) {
	harness.Skip(t, "debian", "the programs are those of Debian packages; on macOS platform/darwin runs its own list")
}
