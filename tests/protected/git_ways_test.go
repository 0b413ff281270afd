//go:build linux

package protected

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// way is something that git runs outside of the sandbox after a session has
// written a file. In its lines PLANTED is the program that shows that it ran,
// and REPLACED its text.
type way struct {
	name    string
	prepare func(s *scene)
	// line is what the session does.
	line string
	// outside is the user's plain command afterwards, in the project.
	outside string
	// reported lists what the review has to name if the line succeeds; without
	// it nothing may run.
	reported string
	// env is of the sidecar and of the user's command.
	env []string
}

// configured makes a repository and adds text to its configuration.
func configured(text string) func(s *scene) {
	return func(s *scene) {
		s.repository(s.Project)
		harness.MakeDir(s.T, s.ProjectPath("tools/hooks"))
		s.append(s.ProjectPath(".git/config"), text)
	}
}

// append adds text to a file.
func (s *scene) append(file, text string) {
	s.T.Helper()
	before, _ := os.ReadFile(file)
	harness.Write(s.T, file, string(before)+text)
}

// aHook is what a session writes to the directory of hooks that git's
// configuration names.
const aHook = `printf '%s\n' "$PLANT" >tools/hooks/post-checkout; chmod +x tools/hooks/post-checkout; true`

var ways = []way{
	{
		name:    "a comment that ends in a backslash",
		prepare: configured("[core]\n\t# C:\\repo\\\n\thooksPath = tools/hooks\n"), line: aHook, outside: "git checkout -q -b side",
	},
	{
		name:    "a second header on one line",
		prepare: configured("[a][core] hooksPath = tools/hooks\n"), line: aHook, outside: "git checkout -q -b side",
	},
}

// Each way runs what the session has planted if the session is not sandboxed.
// If it is, nothing runs, or the review names the file.
func TestWaysThatGitRunsPrograms(t *testing.T) {
	t.Parallel()
	harness.Require(t, "protected_paths")
	for _, one := range ways {
		t.Run(one.name, func(t *testing.T) {
			t.Parallel()
			if ran, _, output := one.try(t, harness.Off()); !ran {
				t.Errorf("without a sandbox nothing ran: %s", output)
			}
			ran, found, output := one.try(t, harness.Defaults(nil))
			if ran && (one.reported == "" || !slices.Contains(found, one.reported)) {
				t.Errorf("it ran outside, and the review says %q: %s", found, output)
			}
			t.Logf("ran unsandboxed; sandboxed: ran %t, review %q", ran, found)
		})
	}
}

// try reports whether the planted program ran outside, and the review.
func (w way) try(t *testing.T, settings string) (ran bool, review []string, output string) {
	t.Helper()
	s := newScene(t)
	w.prepare(s)
	mark := filepath.Join(s.Outside, "ran")
	env := append([]string{"PLANT=#!/bin/sh\necho ran >" + mark}, w.env...)
	for i, one := range env {
		env[i] = strings.ReplaceAll(one, "HOME", s.Home)
	}
	e := s.startWith(harness.Options{Settings: settings, Env: env})
	_, output, _, end := e.run("PLANT='#!/bin/sh\necho ran >" + mark + "'\n" + w.line)
	command := exec.Command("/bin/sh", "-c", w.outside)
	command.Dir, command.Env = s.Project, append(harness.Environ(s.World), env...)
	out, err := command.CombinedOutput()
	output += string(out)
	if err != nil {
		output += err.Error()
	}
	_, err = os.Stat(mark)
	return err == nil, s.review(end), output
}
