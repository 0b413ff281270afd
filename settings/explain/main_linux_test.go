package explain

import (
	"os"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/linux/stage"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/platformtest"
)

// TestMain lets this binary be the stage that confines itself, and the actor
// that the stage executes.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "stage" {
		os.Exit(stage.Run())
	}
	platformtest.Main(m, nil)
}
