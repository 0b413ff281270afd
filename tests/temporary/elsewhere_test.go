//go:build !linux

package temporary

import (
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

func TestTemporary_NeedsLinux(t *testing.T) {
	harness.Skip(t, "temporary_files", "only Linux has namespaces")
}
