//go:build !linux

package lifetime

import (
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

func TestLifetime_NeedsLinux(t *testing.T) {
	harness.Skip(t, "cgroups", "cgroups, subreapers and what is seen of them in /proc are something of Linux; on "+
		"macOS platform/darwin and lifecycle end sessions")
}
