//go:build linux

package attack

import (
	"os"
	"testing"
)

// Reads a file by a hard link that lay in the project before the session, and
// by its name outside. Grants are by path: a name in the project belongs to the
// project, whoever made it, while the name outside stays out of reach.
func TestAHardLinkMadeBeforeTheStartBelongsToTheProject(t *testing.T) {
	t.Parallel()
	prepare := func(s *scene) {
		secretOutside(s)
		must(s.t, os.Link(s.outside("secret"), s.inside("link")))
	}
	attack{
		prepare: prepare,
		actions: func(s *scene) []string {
			return []string{"write", s.inside("link"), secretText, "then", "write", s.outside("secret"), "overwritten"}
		},
		refusal: "EACCES", harm: changed,
	}.mustFail(t)

	s := newScene(t)
	prepare(s)
	if result := s.attempt(s.start(""), "read", s.inside("link")); !result.done() || !leaked(s, result.output) {
		t.Errorf("a name in the project must be readable, whatever else its file is called: status %d\n%s", result.status,
			result.output)
	}
}
