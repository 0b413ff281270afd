//go:build unix

package roles_test

import (
	"bytes"
	"errors"
	"os/exec"
	"strings"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// TestStage_StartsBeforeTheSidecarIsInitialised tests the reason for this
// package. Without a socket the stage ends at once.
func TestStage_StartsBeforeTheSidecarIsInitialised(t *testing.T) {
	t.Parallel()
	const settings = "init github.com/sandbox-sidecar/sandbox-sidecar/settings "
	initialised := func(args ...string) string {
		command := exec.Command(harness.Binary(t), args...)
		command.Env = []string{"GODEBUG=inittrace=1"}
		var trace bytes.Buffer
		command.Stderr = &trace
		var exit *exec.ExitError
		if err := command.Run(); err != nil && !errors.As(err, &exit) {
			t.Fatal(err)
		}
		return trace.String()
	}
	if trace := initialised("version"); !strings.Contains(trace, settings) {
		t.Fatalf("the trace does not show what the whole program initialises:\n%s", trace)
	}
	if trace := initialised("stage"); strings.Contains(trace, settings) || !strings.Contains(trace, "init syscall ") {
		t.Errorf("the stage waits for packages of the sidecar:\n%s", trace)
	}
}

func TestMain(m *testing.M) { harness.Main(m) }
