//go:build !linux

package toolchains

import (
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

func TestToolchains_NeedLinux(t *testing.T) {
	harness.Skip(t, "debian", "the compilers are those of Debian packages")
}
