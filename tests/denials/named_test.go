//go:build linux

package denials

import (
	"strings"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// A read that nothing observes is said after the command if its path was named, with
// the command that allows it. What the session may read is never named.
func TestExec_SaysWhatItNamesAndMayNotRead(t *testing.T) {
	t.Parallel()
	requireReports(t)
	s := newScene(t)
	harness.Write(t, s.UserSettings(), harness.Settings(nil))
	file := s.OutsidePath("file")
	harness.Write(t, file, "content\n")
	harness.Write(t, s.ProjectPath("own"), "content\n")
	const refused = "the sandbox lets no session read "
	s.says(2, refused+`"`+s.Outside+`"; to allow it: `, "exec", "--", "ls", s.Outside)
	if out, _ := s.run("exec", "--", "sh", "-c", "read line <"+file); !strings.Contains(out, refused+`"`+file+`"`) {
		t.Errorf("a redirection:\n%s", out)
	}
	for _, argv := range [][]string{
		{"ls", "own", "no-such-file"},         // it may be read
		{"ls", s.OutsidePath("no-such-file")}, // it does not exist
		{"sh", "-c", "cat own; exit 3"},
		{"sh", "-c", "ls " + s.Outside + "; true"}, // it succeeds
		{"cat", file}, // it is reported
	} {
		if out, _ := s.run(append([]string{"exec", "--"}, argv...)...); strings.Contains(out, refused) {
			t.Errorf("%q:\n%s", argv, out)
		}
	}
	s.says(0, "Allowed", "allow", "--yes", s.Outside)
	if out, status := s.run("exec", "--", "ls", s.Outside); status != 0 || strings.Contains(out, refused) {
		t.Errorf("control: status %d:\n%s", status, out)
	}
	// A key is named, and no step leads to it.
	key := s.HomePath(".ssh/id")
	harness.WritePrivate(t, key, "secret")
	if out, _ := s.run("exec", "--", "ls", s.HomePath(".ssh")); !strings.Contains(out, refused) ||
		strings.Contains(out, "to allow it") {
		t.Errorf("keys:\n%s", out)
	}
}
