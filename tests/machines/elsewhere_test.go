//go:build !linux

package machines

import (
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

func TestMachines_NeedLinux(t *testing.T) {
	harness.Skip(t, "debian", "a machine is laid out in a mount namespace")
}
