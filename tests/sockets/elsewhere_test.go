//go:build !linux

package sockets

import (
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

func TestSockets_NeedLinux(t *testing.T) {
	harness.Skip(t, "seccomp", "that the sidecar connects for a session is something of Linux; on macOS the profile "+
		"decides, and platform/darwin tries it")
}
