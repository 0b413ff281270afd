//go:build !linux

package syscalls

import (
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

func TestSystemCalls_NeedLinux(t *testing.T) {
	harness.Skip(t, "seccomp", "a filter of system calls is something of Linux; on macOS the sandbox names "+
		"operations, and platform/darwin tries them")
}
