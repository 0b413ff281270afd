//go:build !linux

package attack

import (
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

func TestAttacks_NeedLinux(t *testing.T) {
	harness.Skip(t, "landlock", "the attacks are system calls of Linux; what macOS refuses is tried by "+
		"platform/darwin and by doctor")
}
