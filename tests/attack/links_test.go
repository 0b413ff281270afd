//go:build linux

package attack

import (
	"os"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// Reads a file by a hard link that lay in the project before the session, and
// by its name outside. Grants are by path: a name in the project belongs to the
// project, whoever made it. The name outside stays out of reach.
func TestAHardLinkMadeBeforeTheStartBelongsToTheProject(t *testing.T) {
	t.Parallel()
	prepare := func(s *scene) {
		secretOutside(s)
		harness.Must(s.T, os.Link(s.OutsidePath("secret"), s.ProjectPath("link")))
	}
	attack{
		prepare: prepare,
		actions: func(s *scene) []string {
			return []string{
				"write", s.ProjectPath("link"), secretText, "then", "write", s.OutsidePath("secret"), "overwritten",
			}
		},
		harm: changed,
	}.mustFail(t)

	s := newScene(t)
	prepare(s)
	if result := s.attempt(s.Start(""), "read", s.ProjectPath("link")); !result.done() || !leaked(s, result.output) {
		t.Errorf("a name in the project must be readable, whatever else its file is called: status %d\n%s",
			result.status, result.output)
	}
}
