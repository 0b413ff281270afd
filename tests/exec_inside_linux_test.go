package tests

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// TestExec_InsideASession runs a command in the session that exec itself runs in,
// and says so. The session's own limits stay.
func TestExec_InsideASession(t *testing.T) {
	t.Parallel()
	w := harness.NewWorldOutsideDefaults(t)
	harness.Write(t, w.UserSettings(), harness.Defaults(nil))
	secret := filepath.Join(w.Outside, "file")
	harness.Write(t, secret, "outside\n")
	copied := filepath.Join(w.Project, "sidecar")
	if out, err := exec.Command("cp", harness.Binary(t), copied).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	run := func(argv ...string) (stdout, stderr string, status int) {
		command := exec.Command(argv[0], argv[1:]...)
		command.Dir, command.Env = w.Project, harness.Environ(w)
		var out, said strings.Builder
		command.Stdout, command.Stderr = &out, &said
		_ = command.Run() // the status says it
		return out.String(), said.String(), command.ProcessState.ExitCode()
	}
	within := []string{harness.Binary(t), "exec", "--", copied}
	const note = "inside a session already"
	for _, test := range []struct {
		args            []string
		stdout, said    string
		status, outside int
	}{
		{[]string{"exec", "--", "echo", "nested"}, "nested\n", note, 0, 0},
		{[]string{"exec", "--sandbox", "--kind", "tool", "--", "echo", "nested"}, "nested\n", note, 0, 0},
		{[]string{"exec", "--mode", "off", "--", "cat", secret}, "", note, 1, 0},
		{[]string{"exec", "--", "sh", "-c", "exit 7"}, "", note, 7, 7},
		{[]string{"exec", "--", "no-such-program"}, "", "not found", 127, 127},
		{[]string{"exec", "--mode", "strict", "--", "true"}, "", "run it outside", 1, 0},
		{[]string{"policy", "--json"}, "", "not about this one", 0, 0},
		{[]string{"explain", "read", "/etc/hosts"}, "", "not about this one", 0, 0},
		{[]string{"doctor"}, "", "it runs in a sandboxed session", 1, 0},
		{[]string{"learn", "--", "true"}, "", "it runs in a sandboxed session", 1, 0},
		{[]string{"trust"}, "", "inside a session nothing is changed", 1, 1},
		{[]string{"untrust"}, "", "inside a session nothing is changed", 1, 0},
		{[]string{"init", "--yes"}, "", "inside a session nothing is changed", 1, 0},
		{[]string{"cache", "clear"}, "", "inside a session nothing is changed", 1, 0},
		{[]string{"shell", "install"}, "", "inside a session nothing is changed: run", 1, 0},
	} {
		stdout, said, status := run(append(within[:len(within):len(within)], test.args...)...)
		if test.stdout != "" && stdout != test.stdout || status != test.status || !strings.Contains(said, test.said) {
			t.Errorf("%q: status %d, %q\n%s", test.args, status, stdout, said)
		}
		if strings.Contains(said, "sandbox unavailable") {
			t.Errorf("%q: reported as a fault of the machine\n%s", test.args, said)
		}
		_, said, status = run(append([]string{harness.Binary(t)}, test.args...)...)
		if told := strings.Contains(said, "inside a session") || strings.Contains(said, "it runs in a"); told ||
			status != test.outside {
			t.Errorf("control: %q outside: status %d\n%s", test.args, status, said)
		}
	}
}

// Inside a session explain and policy do not say that nothing is sandboxed, also if
// the settings would leave a session without a sandbox that starts outside.
func TestExplain_InsideASessionIsOfASandbox(t *testing.T) {
	t.Parallel()
	w := harness.NewWorldOutsideDefaults(t)
	harness.Write(t, w.UserSettings(), harness.Defaults(harness.Sandbox{"apply_to": "tool"}))
	secret := filepath.Join(w.Outside, "file")
	harness.Write(t, secret, "outside\n")
	copied := filepath.Join(w.Project, "sidecar")
	if out, err := exec.Command("cp", harness.Binary(t), copied).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	run := func(argv ...string) string {
		command := exec.Command(argv[0], argv[1:]...)
		command.Dir, command.Env = w.Project, harness.Environ(w)
		out, err := command.Output()
		harness.Must(t, err)
		return string(out)
	}
	within := []string{harness.Binary(t), "exec", "--sandbox", "--", copied}
	for _, args := range [][]string{{"explain", "read", secret}, {"policy"}} {
		if out := run(append(within[:len(within):len(within)], args...)...); strings.Contains(out, "not sandboxed") {
			t.Errorf("%q inside: %s", args, out)
		}
		if out := run(append([]string{harness.Binary(t)}, args...)...); !strings.Contains(out, "not sandboxed") {
			t.Errorf("control: %q outside: %s", args, out)
		}
	}
	if out := run(append(within, "explain", "read", secret)...); !strings.HasPrefix(out, "refused: ") {
		t.Errorf("a file that is not granted: %s", out)
	}
}
