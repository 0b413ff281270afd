//go:build !linux

package denials

import (
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

func TestDenials_NeedLinux(t *testing.T) {
	harness.Skip(t, "seccomp", "what is refused is reported on Linux; on macOS the system's log holds it, and "+
		"platform/darwin reads it")
}
