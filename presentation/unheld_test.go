package presentation

import (
	"slices"
	"strings"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/compile"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/document"
	"github.com/sandbox-sidecar/sandbox-sidecar/spawn"
)

// A new key says what has to hold for it, or that nothing has.
func TestHoldings_KnowEveryKeyAndProtection(t *testing.T) {
	t.Parallel()
	keys := map[string]bool{}
	for _, key := range document.Keys() {
		keys[key.Name] = true
		if _, known := holdings[key.Name]; !known {
			t.Errorf("%s: what does it need?", key.Name)
		}
	}
	protections := map[string]bool{"": true}
	for _, name := range platform.Protections {
		protections[name] = true
	}
	for key, asked := range holdings {
		if !keys[key] || !protections[asked.protection] {
			t.Errorf("%s needs %q: there is no such key or protection", key, asked.protection)
		}
	}
}

func TestUnheldWarnings_NameKeysAsTheyAreWritten(t *testing.T) {
	t.Parallel()
	written := []policy.Origin{
		{Key: "enabled"},
		{Key: "allow_network", Written: "mode", Entry: "strict"},
		{Key: "hidden_paths", Written: "tool.hidden_paths"},
		{Key: "limits.processes"},
		{Key: "limits.memory", Written: "tool.limits.memory"},
		{Key: "limits.cpu_weight"},
	}
	outcome := spawn.Outcome{Confined: true, Enforcement: platform.Enforcement{
		Protections: spawn.Protections{
			"network":      {Status: platform.Enforced},
			"hidden_paths": {Status: platform.Degraded, Detail: "some are seen"},
			"limits":       {Status: platform.Degraded, Detail: "no memory", Fix: "make a cgroup"},
		},
		Unheld: []string{"limits.memory", "limits.cpu_weight"},
	}}
	const all = `"tool.hidden_paths" not fully enforced here: some are seen` + "\n" +
		`"tool.limits.memory", "limits.cpu_weight" not enforced here: no memory; fix: make a cgroup`
	if got := strings.Join(UnheldWarnings(written, true, outcome), "\n"); got != all {
		t.Errorf("got %s\nwant %s", got, all)
	}
	if got := UnheldWarnings(written, false, spawn.Outcome{}); got != nil {
		t.Errorf("the settings leave the sandbox off: %q", got)
	}
	const none = `"allow_network" not enforced here: the session is not sandboxed`
	if got := UnheldWarnings(written, true, spawn.Outcome{}); len(got) != 3 || got[0] != none {
		t.Errorf("without a sandbox: %q", got)
	}
}

// A lost grant is named with why, what to do, and the setting that gives it. A path
// cannot forge another line.
func TestLostGrants_SayWhyAndWhatToDo(t *testing.T) {
	t.Parallel()
	outcome := spawn.Outcome{Confined: true, Lost: []spawn.LostGrant{{
		Path: "/home/u/a\nb", Reason: "it was not there at the start",
		Origin: policy.Origin{File: "/s.json", Key: "additional_read_only_paths", Line: 3},
	}}}
	const want = `the grant of "/home/u/a\nb", from additional_read_only_paths (/s.json:3), is lost: ` +
		`it was not there at the start; fix that, and start a new session`
	for name, got := range map[string][]string{
		"alone": LostGrants(outcome), "of a session": SandboxWarnings(compile.Result{}, outcome, nil),
	} {
		if !slices.Contains(got, want) {
			t.Errorf("%s: %q", name, got)
		}
	}
	if got := LostGrants(spawn.Outcome{Confined: true}); got != nil {
		t.Errorf("nothing is lost: %q", got)
	}
}
