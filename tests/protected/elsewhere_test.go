//go:build !linux

package protected

import (
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

func TestProtectedPaths_NeedLinux(t *testing.T) {
	harness.Skip(t, "mount_namespaces", "read-only mounts of a session are something of Linux; on macOS the profile "+
		"refuses, and platform/darwin tries it")
}
