//go:build linux

package denials

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// marks are set-user-id, set-group-id and sticky.
const marks = os.ModeSetuid | os.ModeSetgid | os.ModeSticky

// Who lets a program write a file has not let it make a set-user-id program of
// that. In the project and where settings grant writing, marks can be set as
// without a question.
func TestAnAnswerGivesNoMarks(t *testing.T) {
	t.Parallel()
	harness.Require(t, "filesystem")
	s := newScene(t)
	granted := s.OutsidePath("granted")
	harness.MakeDir(t, granted)
	harness.Write(t, s.OutsidePath("written"), "")
	e := s.ask(harness.Sandbox{"additional_read_write_paths": []string{granted}},
		func(p protocol.RequestAccessParams) protocol.Decision {
			if p.Access == "create" && p.Target == s.OutsidePath("session") {
				return protocol.DecisionSession
			}
			return protocol.DecisionOnce
		})
	for _, name := range []string{"written", "created", "session"} {
		path := s.OutsidePath(name)
		session, _, denials := e.tool(s.Victim, "mark-opened", path, s.ProjectPath("own"))
		info, err := os.Stat(path)
		if err != nil {
			t.Fatalf("%s: %v: %s", name, err, session.Output())
		}
		if strings.Contains(session.Output(), "marked") || info.Mode()&marks != 0 {
			harness.Breach(t, "an answer gave a file marks: %s: %v: %s", name, info.Mode(), session.Output())
		}
		if !strings.Contains(session.Output(), "EPERM") {
			t.Errorf("%s: %s", name, session.Output())
		}
		if _, times := find(denials, "write", path); times == 0 {
			t.Errorf("%s: denials %+v", name, denials)
		}
	}
	for _, path := range []string{s.ProjectPath("free"), granted + "/free"} {
		session, status, denials := e.tool(s.Victim, "mark-opened", path, s.ProjectPath("own"))
		for _, way := range []string{"open", "fchmod", "chmod", "dev", "fchmodat", "set-group-id"} {
			if !strings.Contains(session.Output(), "marked: "+way+"\n") {
				t.Errorf("control: %s: %s does not mark", path, way)
			}
		}
		if status != 0 || len(denials) > 0 {
			t.Errorf("control: %s: status %d, denials %+v: %s", path, status, denials, session.Output())
		}
	}
	line := fmt.Sprintf(`echo program >made && install -m 4755 made tool && mkdir -m 1777 shared && chmod g+s shared &&
		ln -s shared link && chmod 3770 link && cd shared && chmod 2700 . && chmod 3775 .. && git init -q --shared %s/r &&
		ls -ld ../tool . .. %s/r/.git; chmod 4755 /nothing`, granted, granted)
	session, _, _ := e.tool("sh", "-c", line)
	for _, want := range []string{
		"-rwsr-xr-x", "drwx--S---", "drwxrwsr-t", "drwxrws",
		"'/nothing': No such file",
	} {
		if !strings.Contains(session.Output(), want) {
			t.Errorf("control: %q is missing in:\n%s", want, session.Output())
		}
	}
}
