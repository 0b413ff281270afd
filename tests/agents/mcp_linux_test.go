package agents

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// Below an agent that is confined it says why it does not start.
func TestMCP_DoesNotStartInASession(t *testing.T) {
	t.Parallel()
	harness.RequireSandbox(t)
	w := harness.NewWorldOutsideDefaults(t)
	harness.Write(t, w.UserSettings(), harness.Defaults(nil))
	inside := filepath.Join(w.Project, "sidecar")
	harness.Victim(t, "cmd/sandbox-sidecar", inside)
	command := exec.Command(harness.Binary(t), "exec", "--kind", "tool", "--", inside, "mcp")
	command.Dir, command.Env = w.Project, harness.Environ(w)
	text, err := command.CombinedOutput()
	if err == nil || !strings.Contains(harness.Unfold(string(text)), "it runs in a sandboxed session") {
		t.Errorf("%v: %s", err, text)
	}
}
