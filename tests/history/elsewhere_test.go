//go:build !linux

package history

import (
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

func TestHistory_NeedsLinux(t *testing.T) {
	harness.Skip(t, "history", "only Linux can put other files in the place of the user's")
}
