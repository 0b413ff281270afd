//go:build !linux

package recording

import (
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

func TestReadme_SaysWhatIsPrinted(t *testing.T) {
	harness.Skip(t, "debian", "README.md shows the messages of Linux")
}
