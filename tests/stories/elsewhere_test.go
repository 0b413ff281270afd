//go:build !linux

package stories

import (
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

func TestStories_NeedLinux(t *testing.T) {
	harness.Skip(t, "debian", "the programs are those of Debian packages")
}
