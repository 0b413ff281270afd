//go:build linux

package denials

import (
	"os"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// A path that once was harmless is checked again if it leads elsewhere. After a
// symlink was moved, nothing is cached for 50 ms, so the programs below wait
// longer than that between their calls.
func TestMovedPathsAreCheckedAgain(t *testing.T) {
	t.Parallel()
	s := newObservedScene(t)
	harness.Write(t, s.OutsidePath("file"), "content\n")
	tries := map[string]string{
		"a symlink that is made anew": `mkdir a; echo own >a/file; ln -s a link; sleep 0.2
cat link/file; echo own >>link/file
			rm link; ln -s "$1" link; cat link/file; echo x >>link/file`,
		"a symlink that is replaced": `mkdir b; echo own >b/file; ln -s b other; ln -s "$1" next; sleep 0.2
cat other/file; echo own >>other/file
			mv -T next other; cat other/file; echo x >>other/file`,
		"a directory with a symlink that is renamed": `mkdir c d e; echo own >c/file; ln -s ../c d/link; ln -s "$1" e/link
sleep 0.2
			cat d/link/file; echo own >>d/link/file; mv d f; mv e d; cat d/link/file; echo x >>d/link/file`,
		"a directory that becomes a symlink": `mkdir mod; echo own >mod/file; cat mod/file; echo own >>mod/file
			rm -r mod; ln -s "$1" mod; cat mod/file; echo x >>mod/file`,
	}
	e := s.start(harness.Settings(nil), nil)
	for name, script := range tries {
		session, status, denials := e.tool("sh", "-c", script, "sh", s.Outside)
		_, reads := find(denials, "read", s.OutsidePath("file"))
		_, writes := find(denials, "write", s.OutsidePath("file"))
		if status == 0 || reads != 1 || writes != 1 || len(denials) != 2 {
			t.Errorf("%s: status %d, denials %+v\n%s", name, status, denials, session.Output())
		}
	}
	if content, err := os.ReadFile(s.OutsidePath("file")); err != nil || string(content) != "content\n" {
		t.Errorf("the file outside holds %q, %v", content, err)
	}
}

// A path is resolved from the caller's root directory: under another root, a
// path that looks like the project's is not the project's.
func TestPathsUnderAnotherRootAreResolvedFromThere(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		harness.Skip(t, "root", "an ordinary user's programs have no other root")
	}
	s := newObservedScene(t)
	file := s.Project + "/file"
	harness.Write(t, file, "own\n")
	harness.Write(t, s.OutsidePath(file), "content\n")
	e := s.start(harness.Settings(nil), nil)
	session, status, denials := e.tool("sh", "-c", `"$2" open-often "$1" 3 && "$2" chroot "$3" then open-often "$1" 1`,
		"sh",
		file, s.Victim, s.Outside)
	if _, times := find(denials, "write", s.OutsidePath(file)); status != 1 || times != 1 || len(denials) != 1 {
		t.Errorf("status %d, denials %+v\n%s", status, denials, session.Output())
	}
}

// What is cached of a path under another root directory does not apply to the
// same path under the usual root.
func TestAnotherRootSuggestsNothing(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		harness.Skip(t, "root", "an ordinary user's programs have no other root")
	}
	s := newObservedScene(t)
	file := s.OutsidePath("file")
	harness.Write(t, file, "content\n")
	// Under the other root, the file's directory exists under the same name.
	harness.Write(t, s.Project+"/jail"+file, "own\n")
	harness.Write(t, s.Project+"/jail"+s.Project+"/jail"+file, "own\n")
	e := s.start(harness.Settings(nil), nil)
	session, status, denials := e.tool("sh", "-c", `"$2" chroot jail then open-often "$1" 3 && echo x >>"$1"`, "sh",
		file, s.Victim)
	if _, times := find(denials, "write", file); status == 0 || times != 1 || len(denials) != 1 {
		t.Errorf("status %d, denials %+v\n%s", status, denials, session.Output())
	}
}

// An operation that fails without a sandbox too is not reported, even if the
// path is not granted.
func TestARenameOfNothingIsNotReported(t *testing.T) {
	t.Parallel()
	s := newObservedScene(t)
	harness.Write(t, s.Project+"/some", "")
	e := s.start(harness.Settings(nil), nil)
	for name, want := range map[string]int{"none": 0, "some": 1} {
		session, status, denials := e.tool(s.Victim, "rename", name, s.OutsidePath("new"))
		if status != 1 || len(denials) != want {
			t.Errorf("%s: status %d, denials %+v\n%s", name, status, denials, session.Output())
		}
	}
}
