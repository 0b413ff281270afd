package toolchain

import (
	"slices"
	"strings"
	"testing"
)

// Each set of an agent can be started by its name, and says what it does to the
// agent's arguments.
func TestAgents_CanBeStarted(t *testing.T) {
	t.Parallel()
	for _, set := range agents {
		a, known := FindAgent(set.Name)
		if !known || a.Program == "" || len(a.Passed) == 0 || (len(a.Args) > 0) != (a.Why != "") ||
			(len(a.Args) > 0) != (len(a.Unless) > 0) {
			t.Errorf("%s: %+v", set.Name, a)
		}
		if strings.Contains(strings.Join(a.Args, " "), "bypass") || slices.Contains(a.Args, "--yolo") {
			t.Errorf("%s: the user's approvals would be gone: %q", set.Name, a.Args)
		}
		for _, variable := range slices.Concat(set.Variables, a.Passed) {
			if strings.ContainsAny(variable.Name, "*") || variable.Why == "" {
				t.Errorf("%s: %+v", set.Name, variable)
			}
		}
	}
	if len(agents) != len(AgentNames()) {
		t.Errorf("%d sets, commands for %q", len(agents), AgentNames())
	}
	for _, name := range []string{"go", "ssh", ""} {
		if _, known := FindAgent(name); known {
			t.Errorf("%q is no agent", name)
		}
	}
}

// A flag of the user's about the inner sandbox counts alone.
func TestAgent_AddsNothingToADecision(t *testing.T) {
	t.Parallel()
	codex, _ := FindAgent("codex")
	for line, added := range map[string]bool{
		"": true, "exec do it": true, "-m gpt": true, "resume --last": true, "-c model=x": true, "--search": true,
		"exec -- --sandbox":   true,
		"--sandbox read-only": false, "exec --sandbox=read-only x": false, "-s workspace-write": false,
		"-sread-only": false,
		"--full-auto": false, "-c sandbox_mode=read-only": false, `--config=sandbox_mode="x"`: false, "--yolo": false,
		`-csandbox_mode="x"`: false, "exec sandbox_mode": true,
		"--dangerously-bypass-approvals-and-sandbox": false,
	} {
		if got := len(codex.Before(strings.Fields(line))) > 0; got != added {
			t.Errorf("%q: added %t", line, got)
		}
	}
	claude, _ := FindAgent("claude")
	if got := claude.Before(nil); len(got) > 0 {
		t.Errorf("claude gets %q", got)
	}
}
