//go:build linux

package attack

import (
	"os"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// Makes a symlink inside that points outside, and writes through it. The rule that counts is that of the file behind the link.
func TestASymlinkMadeInsideDoesNotLeadOut(t *testing.T) {
	t.Parallel()
	attack{
		prepare: secretOutside,
		acts: func(s *scene) []string {
			return []string{"symlink", s.outside("secret"), s.inside("link"), "then", "write", s.inside("link"), "overwritten"}
		},
		refusal: "EACCES", harm: changed,
	}.mustFail(t)
}

// Reads through a chain of symlinks, of files and of directories. The rule that counts is that of the file at the end.
func TestAChainOfSymlinksDoesNotLeadOut(t *testing.T) {
	t.Parallel()
	attack{
		prepare: secretOutside,
		acts: func(s *scene) []string {
			return []string{
				"symlink", "../outside", s.inside("a"), "then", "symlink", "a", s.inside("b"), "then",
				"symlink", "b/secret", s.inside("c"), "then", "read", s.inside("c"),
			}
		},
		refusal: "EACCES", harm: leaked,
	}.mustFail(t)
}

// Reads through a symlink that lay in the project before the session. A grant of the project does not follow the links in it.
func TestASymlinkMadeBeforeTheStartDoesNotLeadOut(t *testing.T) {
	t.Parallel()
	attack{
		prepare: func(s *scene) {
			secretOutside(s)
			must(s.t, os.Symlink(s.Outside, s.inside("link")))
		},
		acts:    func(s *scene) []string { return []string{"read", s.inside("link/secret")} },
		refusal: "EACCES", harm: leaked,
	}.mustFail(t)
}

// Links a file from outside into the project, to write to it there. Rights would grow by the link, so it is refused.
func TestAFileFromOutsideCannotBeLinkedInside(t *testing.T) {
	t.Parallel()
	attack{
		prepare: secretOutside,
		acts: func(s *scene) []string {
			return []string{"link", s.outside("secret"), s.inside("link"), "then", "write", s.inside("link"), "overwritten"}
		},
		refusal: "EXDEV", harm: changed,
	}.mustFail(t)
}

// Links a file that is granted for reading into the project, to write to it there. Rights would grow by the link, so it is refused.
func TestAReadOnlyFileCannotBeLinkedToWhereItIsWritable(t *testing.T) {
	t.Parallel()
	attack{
		grants: readOnlyOutside, prepare: secretOutside,
		acts: func(s *scene) []string {
			return []string{"link", s.outside("secret"), s.inside("link"), "then", "write", s.inside("link"), "overwritten"}
		},
		refusal: "EXDEV", harm: changed,
	}.mustFail(t)
}

// Reads a file by a hard link that lay in the project before the session, and by its name outside. Grants are by path: a name in the
// project belongs to the project, whoever made it, while the name outside stays out of reach.
func TestAHardLinkMadeBeforeTheStartBelongsToTheProject(t *testing.T) {
	t.Parallel()
	prepare := func(s *scene) {
		secretOutside(s)
		must(s.t, os.Link(s.outside("secret"), s.inside("link")))
	}
	attack{
		prepare: prepare,
		acts: func(s *scene) []string {
			return []string{"write", s.inside("link"), secretText, "then", "write", s.outside("secret"), "overwritten"}
		},
		refusal: "EACCES", harm: changed,
	}.mustFail(t)

	s := newScene(t)
	prepare(s)
	if result := s.strike(s.start(""), "read", s.inside("link")); !result.done() || !leaked(s, result.output) {
		t.Errorf("a name in the project must be readable, whatever else its file is called: status %d\n%s", result.status, result.output)
	}
}

// Renames a file from outside into the project, to read it there. The outside grants no removing.
func TestAFileFromOutsideCannotBeRenamedInside(t *testing.T) {
	t.Parallel()
	attack{
		prepare: secretOutside,
		acts: func(s *scene) []string {
			return []string{"rename", s.outside("secret"), s.inside("mine"), "then", "read", s.inside("mine")}
		},
		refusal: "EACCES", harm: leaked,
	}.mustFail(t)
}

// Renames a file of the project onto one outside. The outside grants neither making nor removing.
func TestAFileFromInsideCannotBeRenamedOntoOneOutside(t *testing.T) {
	t.Parallel()
	attack{
		prepare: func(s *scene) { secretOutside(s); harness.Write(s.t, s.inside("mine"), "overwritten") },
		acts:    func(s *scene) []string { return []string{"rename", s.inside("mine"), s.outside("secret")} },
		refusal: "EACCES", harm: changed,
	}.mustFail(t)
}

// Moves the directory that holds a file from outside into the project, and the directory above that, to read the file there. No rule
// grants removing them from where they are.
func TestADirectoryFromOutsideCannotBeMovedInside(t *testing.T) {
	t.Parallel()
	for name, moved := range map[string]string{"parent": "a/b", "grandparent": "a"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			below := "secret"
			if name == "grandparent" {
				below = "b/secret"
			}
			attack{
				prepare: func(s *scene) { harness.Write(s.t, s.outside("a/b/secret"), secretText) },
				acts: func(s *scene) []string {
					return []string{"rename", s.outside(moved), s.inside("c"), "then", "read", s.inside("c/" + below)}
				},
				refusal: "EACCES", harm: leaked,
			}.mustFail(t)
		})
	}
}

// Moves a directory from outside into the project, changes a file in it, and moves it back. The first move is refused already.
func TestADirectoryFromOutsideCannotBeBorrowed(t *testing.T) {
	t.Parallel()
	attack{
		prepare: func(s *scene) { harness.Write(s.t, s.outside("a/b"), secretText) },
		acts: func(s *scene) []string {
			return []string{
				"rename", s.outside("a"), s.inside("c"), "then", "write", s.inside("c/b"), "overwritten", "then",
				"rename", s.inside("c"), s.outside("a"),
			}
		},
		refusal: "EACCES",
		harm:    func(s *scene, _ string) bool { return harness.Read(s.t, s.outside("a/b")) != secretText },
	}.mustFail(t)
}

// Renames a file within a directory that is granted for reading only, and from there into the project. Reading includes no removing.
func TestAReadOnlyFileCannotBeRenamed(t *testing.T) {
	t.Parallel()
	for name, to := range map[string]func(*scene) string{
		"within": func(s *scene) string { return s.outside("other") },
		"inside": func(s *scene) string { return s.inside("other") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			attack{
				grants: readOnlyOutside, prepare: secretOutside,
				acts:    func(s *scene) []string { return []string{"rename", s.outside("secret"), to(s)} },
				refusal: "EACCES", harm: changed,
			}.mustFail(t)
		})
	}
}

// Lets a directory of the project and a symlink to the outside change places thousands of times a second while files are opened below.
// The kernel checks the file that it has reached, so that there is no moment between check and use.
func TestARaceOfSymlinksDoesNotLeadOut(t *testing.T) {
	t.Parallel()
	attack{
		prepare: func(s *scene) {
			makeDir(s.t, s.inside("place"))
			harness.Write(s.t, s.outside("prey"), "")
		},
		acts:    func(s *scene) []string { return []string{"race", s.inside("place"), s.Outside} },
		refusal: "EACCES",
		harm:    func(s *scene, _ string) bool { return harness.Read(s.t, s.outside("prey")) != "" },
	}.mustFail(t)
}
