package linux

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
)

func TestPlan_TakesWhatIsThereAndAskedFor(t *testing.T) {
	t.Parallel()
	all := namespaces{mounts: true, network: true, user: true}
	for _, test := range []struct {
		there namespaces
		asked Asked
		want  *Own
	}{
		{all, Asked{}, nil},
		{all, Asked{Denials: true, WholeFilesystem: true}, nil},
		{all, Asked{Terminals: true}, &Own{User: true, Terminals: true}},
		{all, Asked{Network: true}, &Own{User: true, Network: true}},
		{all, Asked{Terminals: true, Network: true}, &Own{User: true, Terminals: true, Network: true}},
		{namespaces{mounts: true, network: true}, Asked{Terminals: true}, &Own{Terminals: true}},
		{namespaces{mounts: true}, Asked{Terminals: true, Network: true}, &Own{Terminals: true}},
		{namespaces{why: "none"}, Asked{Terminals: true, Network: true}, nil},
	} {
		got := test.there.plan(test.asked, Keep{})
		if (got == nil) != (test.want == nil) || got != nil && fmt.Sprint(*got) != fmt.Sprint(*test.want) {
			t.Errorf("%+v of %+v: %+v, want %+v", test.asked, test.there, got, test.want)
		}
	}
}

func TestReport_SaysWhatNamespacesGive(t *testing.T) {
	t.Parallel()
	ruleset := func(own *Own, lacks string) Ruleset {
		r := Translate(&policy.Policy{Restricted: true, PrivateTerminals: true}, 9)
		r.Own, r.Lacks = own, lacks
		return r
	}
	full := report(ruleset(&Own{Terminals: true, Network: true}, ""), outcome{terminals: true})
	if p := full[platform.Filesystem]; p.Status != platform.Enforced || p.Fix != "" ||
		!strings.Contains(p.Detail, "session's own") {
		t.Errorf("%+v", p)
	}
	if p := full[platform.Network]; p.Status != platform.Enforced || p.Fix != "" ||
		!strings.Contains(p.Mechanism, "namespace") {
		t.Errorf("%+v", p)
	}
	for name, p := range report(ruleset(nil, "no namespaces: clone: EPERM"), outcome{}) {
		if name != platform.Filesystem && name != platform.Network {
			continue
		}
		if p.Status != platform.Enforced || !strings.Contains(p.Detail, "clone: EPERM") ||
			!strings.Contains(p.Fix, "max_user_namespaces") || strings.Contains(p.Mechanism, "namespace") {
			t.Errorf("%s: %+v", name, p)
		}
	}
	borrowed := report(ruleset(&Own{Terminals: true}, ""), outcome{without: "its number is too high"})[platform.Filesystem]
	if !strings.Contains(borrowed.Detail, "too high") || strings.Contains(borrowed.Fix, "max_user_namespaces") ||
		!strings.Contains(borrowed.Fix, "/dev/pts") {
		t.Errorf("%+v", borrowed)
	}
	granted := report(Translate(&policy.Policy{Restricted: true}, 9), outcome{})[platform.Filesystem]
	if !strings.Contains(granted.Detail, "as far as the settings grant them") || granted.Fix != "" {
		t.Errorf("%+v", granted)
	}
}

func TestSSHIncludes(t *testing.T) {
	t.Parallel()
	got := sshIncludes("# Include no\nInclude /etc/ssh/ssh_config.d/*.conf\n  include\ta \"b c\" # d\nINCLUDE=x\nHost " +
		"Include\n Includes y\nInclude\n")
	// A quoted name with a blank is taken for two; the halves are looked for in
	// vain, and ssh complains as it does without a sandbox.
	if want := []string{"/etc/ssh/ssh_config.d/*.conf", "a", "b", "c", "x"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
