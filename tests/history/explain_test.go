//go:build linux

package history

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// Explanations know what a session has for itself: the history, the links that
// are shells, the program behind them, the directory for temporary files. What
// explain says is what the kernel does, for terminals and tools, before and
// after the links were made. The id of the policy knows it too, and is the same
// after the first session.
func TestHistory_ExplainAgreesWithTheKernel(t *testing.T) {
	t.Parallel()
	harness.Require(t, "filesystem")
	w := harness.NewWorldOutsideDefaults(t)
	harness.Write(t, w.UserSettings(), harness.Defaults(nil))
	run := func(args ...string) (status int, output string) {
		command := exec.Command(harness.Binary(t), args...)
		command.Env, command.Dir = harness.Environ(w), w.Project
		out, err := command.CombinedOutput()
		if _, ended := errors.AsType[*exec.ExitError](err); err != nil && !ended {
			t.Fatal(err)
		}
		return command.ProcessState.ExitCode(), string(out)
	}
	id := func(kind string) string {
		command := exec.Command(harness.Binary(t), "policy", "--json", "--kind", kind)
		command.Env, command.Dir = harness.Environ(w), w.Project
		out, err := command.Output()
		harness.Must(t, err)
		var got struct{ PolicyID string }
		harness.Must(t, json.Unmarshal(out, &got))
		return got.PolicyID
	}
	before := id("terminal")
	if status, output := run("exec", "--", "true"); status != 0 {
		t.Fatalf("exec: status %d: %s", status, output)
	}
	if after := id("terminal"); after != before {
		t.Errorf("the id of the policy was %s, and is %s after the first session", before, after)
	}
	all := w.HomePath(".local/state/sandbox-sidecar/history")
	dirs, err := filepath.Glob(filepath.Join(all, "*-????????????????"))
	if err != nil || len(dirs) != 1 {
		t.Fatalf("%q, %v", dirs, err)
	}
	own, other, links := dirs[0], filepath.Join(all, "other"), w.HomePath(".local/share/sandbox-sidecar/shells")
	harness.Must(t, os.Mkdir(other, 0o700))
	acts := []struct{ access, path, line string }{
		{"write", filepath.Join(own, "bash_history"), ": >>%s"},
		{"write", filepath.Join(own, "new"), ": >>%s"},
		{"read", filepath.Join(all, "start/startup.py"), ": <%s"},
		{"write", filepath.Join(all, "start/startup.py"), ": >>%s"},
		{"write", filepath.Join(other, "bash_history"), ": >>%s"},
		{"read", filepath.Join(links, "bash"), ": <%s"},
		{"write", filepath.Join(links, "new"), ": >>%s"},
		{"execute", harness.Binary(t), "%s version"},
		{"write", harness.Binary(t), ": >>%s"},
		{"write", filepath.Join(os.TempDir(), "private"), ": >>%s"},
		{"write", filepath.Join(w.Project, "file"), ": >>%s"},
		{"write", filepath.Join(w.Outside, "file"), ": >>%s"},
	}
	allowed := map[string]int{}
	for _, linked := range []bool{false, true} {
		if linked {
			if status, output := run("shell", "install"); status != 0 {
				t.Fatalf("shell install: %s", output)
			}
		}
		for _, kind := range []string{"terminal", "tool"} {
			for _, act := range acts {
				if !linked && filepath.Dir(act.path) == links {
					continue // nothing is there yet
				}
				// Explained before the session that makes it.
				said, explanation := run("explain", "--check", "--kind", kind, act.access, act.path)
				line := fmt.Sprintf(act.line, "'"+act.path+"'")
				did, output := run("exec", "--kind", kind, "--", "/bin/sh", "-c", line+" >/dev/null")
				if (said == 0) != (did == 0) {
					harness.Breach(t, "%s, links %t, %s %s: explain says %s, the kernel says %d: %s", kind, linked,
						act.access, act.path, explanation, did, output)
				}
				if did == 0 {
					allowed[fmt.Sprintf("%s, links %t, %s %s", kind, linked, act.access, filepath.Base(act.path))]++
				}
			}
		}
	}
	for _, want := range []string{
		"terminal, links false, write bash_history", "terminal, links true, read startup.py",
		"tool, links true, read bash", "terminal, links true, execute " + filepath.Base(harness.Binary(t)),
		"tool, links false, execute " + filepath.Base(harness.Binary(t)),
	} {
		if allowed[want] == 0 {
			t.Errorf("not allowed, so this compares little: %s; allowed: %v", want, allowed)
		}
	}
	if allowed["tool, links true, write bash_history"] > 0 {
		t.Error("a tool writes the history")
	}
	if id("terminal") != before {
		t.Error("links change the policy, although they lead to what every session may execute")
	}
}
