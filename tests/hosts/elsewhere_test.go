//go:build !linux

package hosts

import (
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

func TestHosts_NeedLinux(t *testing.T) {
	harness.Skip(t, "network_hosts", "that the sidecar connects for a session is something of Linux")
}
