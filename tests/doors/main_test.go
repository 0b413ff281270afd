package doors

import (
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }
