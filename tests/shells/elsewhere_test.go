//go:build !linux

package shells

import (
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

func TestShells_NeedLinux(t *testing.T) {
	harness.Skip(t, "debian", "the programs are those of Debian packages")
}
