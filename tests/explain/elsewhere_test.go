//go:build !linux

package explain

import (
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }

func TestExplain_NeedsLinux(t *testing.T) {
	harness.Skip(t, "filesystem", "the test's attempts are for Linux")
}
