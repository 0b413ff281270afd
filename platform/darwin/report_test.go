package darwin

import (
	"errors"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
)

func TestReport(t *testing.T) {
	t.Parallel()
	strict := everyday()
	strict.Network.Allowed = false
	open := &policy.Policy{
		Restricted: true, Network: policy.Network{Allowed: true}, OnDenied: policy.Ignore,
		Rules: []policy.Rule{grantRule("/", policy.Read)},
	}
	for name, test := range map[string]struct {
		plan                                    Plan
		filesystem, network, protected, denials platform.Status
		notAsked                                bool
		unkept                                  []string
	}{
		"strict": {
			Translate(strict, host), platform.Enforced, platform.Enforced, platform.Enforced, platform.Degraded,
			false, nil,
		},
		"open": {
			Translate(open, host), platform.Degraded, platform.Absent, platform.Enforced, platform.Absent, true, nil,
		},
		"no repository yet": {
			Translate(strict, host), platform.Enforced, platform.Enforced, platform.Degraded, platform.Degraded, false,
			[]string{"/Users/u/p/.git/config"},
		},
	} {
		got := report(Scene{Plan: test.plan, Unkept: test.unkept})
		for protection, want := range map[string]platform.Status{
			platform.Filesystem: test.filesystem, platform.Network: test.network,
			platform.ProtectedPaths: test.protected, platform.Denials: test.denials,
			platform.Execute: platform.Enforced, platform.UnixSockets: platform.Enforced,
			platform.Signals: platform.Enforced, platform.Syscalls: platform.Enforced,
		} {
			if got[protection].Status != want {
				t.Errorf("%s: %s is %s, want %s", name, protection, got[protection].Status, want)
			}
		}
		for _, protection := range []string{platform.Network, platform.ProtectedPaths, platform.Denials} {
			if got[protection].NotRequested != test.notAsked {
				t.Errorf("%s: %s: not requested is %t", name, protection, got[protection].NotRequested)
			}
		}
		mustBeWhole(t, name, got)
	}
	mustBeWhole(t, "absent", absent(errors.New("switched off")))
}

// mustBeWhole checks that a report has each protection with a detail, and a
// mechanism exactly if there is one.
func mustBeWhole(t *testing.T, name string, report map[string]platform.Protection) {
	t.Helper()
	for _, protection := range platform.Protections {
		p, ok := report[protection]
		switch {
		case ok == (protection == platform.ProcessTracking):
			t.Errorf("%s: %s: reported is %t", name, protection, ok)
		case ok && (p.Detail == "" || (p.Status == platform.Absent) != (p.Mechanism == "")):
			t.Errorf("%s: %s: %+v", name, protection, p)
		}
	}
}
