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
