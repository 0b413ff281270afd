//go:build !linux

package doors

import (
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

func TestDoors_NeedLinux(t *testing.T) {
	harness.Skip(t, "landlock", "a kernel without Landlock is imitated by a filter of Linux")
}
