//go:build linux

package attack

import (
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// Writes a file outside by its absolute path. No rule grants the directory, so open(2) for writing is refused.
func TestAnAbsolutePathDoesNotReachOutside(t *testing.T) {
	t.Parallel()
	attack{
		prepare: secretOutside,
		acts:    func(s *scene) []string { return []string{"write", s.outside("secret"), "overwritten"} },
		refusal: "EACCES", harm: changed,
	}.mustFail(t)
}

// Creates a file outside. No rule grants make_reg there.
func TestNoFileCanBeMadeOutside(t *testing.T) {
	t.Parallel()
	attack{
		acts:    func(s *scene) []string { return []string{"write", s.outside("planted"), "x"} },
		refusal: "EACCES", harm: appeared("planted"),
	}.mustFail(t)
}

// Creates a directory, a symlink and a FIFO outside. No rule grants make_dir, make_sym or make_fifo there.
func TestNoOtherKindOfFileCanBeMadeOutside(t *testing.T) {
	t.Parallel()
	for name, acts := range map[string]func(path string) []string{
		"directory": func(path string) []string { return []string{"mkdir", path} },
		"symlink":   func(path string) []string { return []string{"symlink", "/", path} },
		"fifo":      func(path string) []string { return []string{"mkfifo", path} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			attack{
				acts:    func(s *scene) []string { return acts(s.outside("planted")) },
				refusal: "EACCES", harm: appeared("planted"),
			}.mustFail(t)
		})
	}
}

// Reads a file outside through "..", from the project and from a directory in it. Rules hold for the file that is reached, not for the
// way to it.
func TestDotDotDoesNotLeadOut(t *testing.T) {
	t.Parallel()
	attack{
		prepare: func(s *scene) { secretOutside(s); makeDir(s.t, s.inside("deep/er")) },
		acts:    func(s *scene) []string { return []string{"read", s.inside("deep/er/../../../outside/secret")} },
		refusal: "EACCES", harm: leaked,
	}.mustFail(t)
}

// Lists a directory outside. No rule grants read_dir there.
func TestTheOutsideCannotBeListed(t *testing.T) {
	t.Parallel()
	attack{
		prepare: func(s *scene) { harness.Write(s.t, s.outside(secretText), "") },
		acts:    func(s *scene) []string { return []string{"list", s.Outside} },
		refusal: "EACCES", harm: leaked,
	}.mustFail(t)
}

// Starts in a working directory that is not granted and reads by relative paths. A working directory is no grant.
func TestAWorkingDirectoryOutsideGrantsNothing(t *testing.T) {
	t.Parallel()
	attack{
		prepare: secretOutside,
		from: func(s *scene) protocol.SpawnParams {
			return protocol.SpawnParams{Cwd: s.Outside, ProjectDir: s.Project}
		},
		acts:    func(*scene) []string { return []string{"read", "secret"} },
		refusal: "EACCES", harm: leaked,
	}.mustFail(t)
}

// Changes to a directory outside, which Landlock does not mediate, and reads from there. Reading is refused wherever one stands.
func TestChangingDirectoryGrantsNothing(t *testing.T) {
	t.Parallel()
	attack{
		prepare: secretOutside,
		acts:    func(s *scene) []string { return []string{"chdir", s.Outside, "then", "read", "secret"} },
		refusal: "EACCES", harm: leaked,
	}.mustFail(t)
}

// Empties a file that is granted for reading by truncate(2) and by opening it with O_TRUNC. Reading does not include truncating.
func TestAReadOnlyFileCannotBeTruncated(t *testing.T) {
	t.Parallel()
	for name, acts := range map[string][]string{"truncate": {"truncate"}, "open": {"write"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			attack{
				grants:  readOnlyOutside,
				prepare: secretOutside,
				acts: func(s *scene) []string {
					line := append([]string{"read", s.outside("secret"), "then"}, append(acts, s.outside("secret"))...)
					if acts[0] == "write" {
						line = append(line, "")
					}
					return line
				},
				refusal: "EACCES", harm: changed,
			}.mustFail(t)
		})
	}
}

// Appends to a file that is granted for reading. Appending is writing.
func TestAReadOnlyFileCannotBeAppendedTo(t *testing.T) {
	t.Parallel()
	attack{
		grants: readOnlyOutside, prepare: secretOutside,
		acts:    func(s *scene) []string { return []string{"append", s.outside("secret"), "more"} },
		refusal: "EACCES", harm: changed,
	}.mustFail(t)
}

// Removes a file and a directory that are granted for reading. Reading does not include removing.
func TestReadOnlyFilesAndDirectoriesCannotBeRemoved(t *testing.T) {
	t.Parallel()
	t.Run("file", func(t *testing.T) {
		t.Parallel()
		attack{
			grants: readOnlyOutside, prepare: secretOutside,
			acts:    func(s *scene) []string { return []string{"unlink", s.outside("secret")} },
			refusal: "EACCES", harm: changed,
		}.mustFail(t)
	})
	t.Run("directory", func(t *testing.T) {
		t.Parallel()
		attack{
			grants:  readOnlyOutside,
			prepare: func(s *scene) { makeDir(s.t, s.outside("empty")) },
			acts:    func(s *scene) []string { return []string{"rmdir", s.outside("empty")} },
			refusal: "EACCES", harm: disappeared("empty"),
		}.mustFail(t)
	})
}

// readOnlyOutside grants the outside for reading.
func readOnlyOutside(s *scene) harness.Sandbox {
	return harness.Sandbox{"additional_read_only_paths": []string{s.Outside}}
}

// Reads by openat2(2) with several ways to walk and with a structure of another size. It is the same verdict: rules are the kernel's, not
// those of somebody who looks at system calls.
func TestOpenat2IsNoWayAround(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"plain", "no-links", "beneath", "larger"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			attack{
				prepare: secretOutside,
				acts:    func(s *scene) []string { return []string{"openat2", s.outside("secret"), how} },
				refusal: "EACCES", harm: leaked,
			}.mustFail(t)
		})
	}
}

// Opens a directory outside with O_PATH, which Landlock does not mediate, and reads below it by the descriptor. The file is what is
// refused.
func TestADescriptorOfADirectoryOutsideIsUseless(t *testing.T) {
	t.Parallel()
	attack{
		prepare: secretOutside,
		acts:    func(s *scene) []string { return []string{"read-in", s.Outside, "secret"} },
		refusal: "EACCES", harm: leaked,
	}.mustFail(t)
}

// Makes a file without a name outside, and one inside that is then linked to a name outside. The first lacks make_reg, the second refer.
func TestATemporaryFileCannotBeLinkedOutside(t *testing.T) {
	t.Parallel()
	for name, from := range map[string]struct {
		dir     func(*scene) string
		refusal string
	}{
		"made outside": {func(s *scene) string { return s.Outside }, "EACCES"},
		"made inside":  {func(s *scene) string { return s.Project }, "EACCES"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			attack{
				acts:    func(s *scene) []string { return []string{"tmpfile", from.dir(s), s.outside("planted")} },
				refusal: from.refusal, harm: appeared("planted"),
			}.mustFail(t)
		})
	}
}
