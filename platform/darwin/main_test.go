//go:build unix

package darwin

import (
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/platformtest"
)

func TestMain(m *testing.M) { platformtest.Main(m, stageHalf) }
