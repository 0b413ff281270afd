//go:build !linux

package groups

import (
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

func TestGroups_NeedLinux(t *testing.T) {
	harness.Skip(t, "groups", "sessions can share a sandbox on Linux only")
}
