//go:build linux

package attack

import (
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// Starts in a working directory that is not granted and reads by relative
// paths. A working directory is no grant.
func TestAWorkingDirectoryOutsideGrantsNothing(t *testing.T) {
	t.Parallel()
	attack{
		prepare: secretOutside,
		from: func(s *scene) protocol.SpawnParams {
			return protocol.SpawnParams{Cwd: s.Outside, ProjectDir: s.Project}
		},
		actions: func(*scene) []string { return []string{"read", "secret"} },
		refusal: "EACCES", harm: leaked,
	}.mustFail(t)
}

// readOnlyOutside grants the outside for reading.
func readOnlyOutside(s *scene) harness.Sandbox {
	return harness.Sandbox{"additional_read_only_paths": []string{s.Outside}}
}
