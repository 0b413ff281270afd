package linux

import (
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/linux/seccomp"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/linux/stage"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
)

func TestSeesChanges_OnlyWhereEveryCallIsAsked(t *testing.T) {
	t.Parallel()
	sockets := &policy.Policy{UnixSockets: []policy.UnixSocket{{Path: "/run/x"}}}
	for _, test := range []struct {
		filtering seccomp.Filtering
		connect   bool // Landlock decides about Unix sockets
		policy    *policy.Policy
		want      bool
	}{
		{seccomp.Filtering{Observed: seccomp.ObservedNamed, Sockets: true}, false, sockets, true},
		{seccomp.Filtering{Observed: seccomp.ObservedAll, Sockets: true}, false, sockets, true},
		{seccomp.Filtering{Observed: seccomp.ObservedCreations, Sockets: true}, false, sockets, false},
		{seccomp.Filtering{Observed: seccomp.ObservedNone, Sockets: true}, false, sockets, false},
		{seccomp.Filtering{Observed: seccomp.ObservedNamed, Sockets: true, Shared: true}, false, sockets, false},
		{seccomp.Filtering{Observed: seccomp.ObservedNamed}, true, &policy.Policy{}, true},
		{seccomp.Filtering{Observed: seccomp.ObservedNamed}, true, sockets, false},
		{seccomp.Filtering{Observed: seccomp.ObservedNamed}, false, &policy.Policy{}, false},
	} {
		r := ruleset{stage.Ruleset{Filtering: test.filtering}}
		if test.connect {
			r.FS |= stage.FSConnect
		}
		if got := r.seesChanges(test.policy); got != (test.want && !dumpsAnyName()) {
			t.Errorf("%+v, Landlock decides: %v, sockets %v: %v", test.filtering, test.connect, test.policy.UnixSockets,
				got)
		}
	}
}

func TestNamesAny_OfAPatternForCoreDumps(t *testing.T) {
	t.Parallel()
	for pattern, want := range map[string]bool{
		"core": false, "core.%p": false, "|/usr/lib/systemd/systemd-coredump %P %e": false, "": false,
		"%e": true, "core.%e": true, "%f.%p": true, "/var/crash/core.%p": true,
	} {
		if got := namesAny(pattern); got != want {
			t.Errorf("%q: %v", pattern, got)
		}
	}
}
