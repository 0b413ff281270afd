//go:build linux

package lifetime

import (
	"os/exec"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// trackingMode is one of the ways in which this machine can track a session's
// processes.
type trackingMode struct {
	name string
	// wrap makes a sidecar use this mode; see harness.Options.
	wrap func(t *testing.T) func(*exec.Cmd)
}

// roundsOf is how many rounds of a test the i-th of all tracking modes has: a
// quarter of them if it is not its turn.
func roundsOf(t *testing.T, rounds, i int, modes []trackingMode) int {
	t.Helper()
	if harness.Turn(t, i, len(modes)) {
		return rounds
	}
	return rounds / 4
}

func trackingModes(t *testing.T) []trackingMode {
	t.Helper()
	all := []trackingMode{{"as it comes", func(*testing.T) func(*exec.Cmd) { return func(*exec.Cmd) {} }}}
	if harness.HasCgroups(t) {
		all = append(all, trackingMode{"without cgroups", func(t *testing.T) func(*exec.Cmd) {
			return harness.WithoutCgroups(
				t)
		}})
	}
	return all
}
