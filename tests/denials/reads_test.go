//go:build linux

package denials

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// By default a refused read is reported if the path was on the program's
// command line, or else if the program prints it. The reply says so.
func TestRefusedReadsByCommonProgramsAreReported(t *testing.T) {
	t.Parallel()
	harness.Require(t, "filesystem")
	s := newScene(t)
	key := filepath.Join(s.Home, ".ssh", "id_rsa")
	harness.Write(t, key, "key\n")
	file := s.OutsidePath("file")
	harness.Write(t, file, "content\n")
	tries := map[string]*reading{
		"cat of a key":              {argv: []string{"cat", key}, target: key},
		"cat":                       {argv: []string{"cat", file}},
		"head":                      {argv: []string{"head", "-n1", file}},
		"tail":                      {argv: []string{"tail", "-n1", file}},
		"cp":                        {argv: []string{"cp", file, filepath.Join(s.Project, "copy")}},
		"dd":                        {argv: []string{"dd", "status=none", "if=" + file}},
		"sort":                      {argv: []string{"sort", file}, missed: true},
		"wc":                        {argv: []string{"wc", file}},
		"sed":                       {argv: []string{"sed", "-n", "1p", file}},
		"a redirection":             {argv: []string{"sh", "-c", "read line <" + file}, missed: true},
		"a script":                  {argv: []string{"sh", "-c", "cd " + s.Project + " && cat ../outside/file"}},
		"a program, by an argument": {argv: []string{s.Victim, "read-often", file, "1"}},
		"grep":                      {argv: []string{"grep", "content", file}},
		"grep of a directory":       {argv: []string{"grep", "-r", "content", s.Outside}, target: s.Outside},
		"a list":                    {argv: []string{"ls", s.Outside}, target: s.Outside, missed: true},
		"close-on-exec":             {argv: []string{"python3", "-c", "open('" + file + "')"}, missed: true},
	}
	open := s.start(harness.Off(), nil)
	for name, test := range tries {
		if test.target == "" {
			test.target = file
		}
		if _, err := exec.LookPath(test.argv[0]); err != nil {
			harness.Skip(t, test.argv[0], err.Error())
		}
		if session, status, _ := open.tool(test.argv...); status != 0 {
			t.Errorf("%s: control: without a sandbox: status %d\n%s", name, status, session.Output())
		}
	}
	report := s.start(harness.Settings(nil), nil)
	observed(t, report)
	for name, test := range tries {
		session, status, denials := report.tool(test.argv...)
		denial, times := find(denials, "read", test.target)
		switch {
		case status == 0:
			t.Errorf("%s: it is not refused\n%s", name, session.Output())
		case test.missed && (times != 1 || denial.Source != protocol.DenialFromOutput):
			t.Errorf("%s: it is documented as missed, so only its output tells of it: %+v\n%s", name, denials,
				session.Output())
		case !test.missed && (times != 1 || len(denials) != 1 || denial.Count != 1 || denial.Process == nil):
			t.Errorf("%s: denials %+v\n%s", name, denials, session.Output())
		}
		p := session.Sandbox.Protections["denials"]
		for _, words := range []string{"cat, cp, sed, grep", "close-on-exec", "redirections", "listed directories"} {
			if p.Status != protocol.Degraded || !strings.Contains(p.Detail, words) {
				t.Fatalf("the reply does not mention %q: %+v", words, p)
			}
		}
	}
	// The other control: with "ask", these are reported, too.
	every := s.start(harness.Settings(harness.Sandbox{"on_denied": "ask"}), nil)
	for name, test := range tries {
		if !test.missed {
			continue
		}
		session, _, denials := every.tool(test.argv...)
		if _, times := find(denials, "read", test.target); times != 1 {
			t.Errorf("%s: on_denied is ask, reported %+v\n%s", name, denials, session.Output())
		}
	}
}

// reading is one way to read a file.
type reading struct {
	argv   []string
	target string // "": the file outside
	missed bool
}
