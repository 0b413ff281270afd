package linux

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
)

// strict asks for every protection.
var strict = &policy.Policy{
	Restricted: true, Protected: []policy.Protected{{Path: "/p"}}, OnDenied: policy.Report, Network: policy.Network{Allowed: false},
}

func TestReport_PerVersion(t *testing.T) {
	t.Parallel()
	const e, d, a = platform.Enforced, platform.Degraded, platform.Absent
	for _, test := range []struct {
		from, to                         int
		filesystem, signals, unixSockets platform.Status
	}{
		{1, 4, d, a, a},
		{5, 5, e, a, a},
		{6, 8, e, e, d},
		{9, 20, e, e, e},
	} {
		for abi := test.from; abi <= test.to; abi++ {
			got := report(Translate(strict, abi), outcome{})
			for name, want := range map[string]platform.Status{
				platform.Filesystem: test.filesystem, platform.Signals: test.signals, platform.UnixSockets: test.unixSockets,
				platform.Execute: e, platform.Network: e, platform.ProtectedPaths: d, platform.Syscalls: e, platform.Denials: a,
			} {
				if got[name].Status != want {
					t.Errorf("ABI %d: %s is %s, want %s", abi, name, got[name].Status, want)
				}
			}
			if want := fmt.Sprintf("landlock (ABI %d)", abi); got[platform.Execute].Mechanism != want {
				t.Errorf("mechanism is %q, want %q", got[platform.Execute].Mechanism, want)
			}
		}
	}
}

func TestReport_SaysWhyAndWhatHelps(t *testing.T) {
	t.Parallel()
	for _, p := range []*policy.Policy{strict, samples["everything"], samples["terminal"]} {
		for _, abi := range abis {
			for name, protection := range report(Translate(p, abi), outcome{}) {
				if protection.Detail == "" {
					t.Errorf("ABI %d: %s is %s without a word why", abi, name, protection.Status)
				}
				// A newer kernel, or another setting, helps with these; what
				// this version lacks for everybody the user cannot mend.
				mendable := name == platform.Filesystem || name == platform.Signals || name == platform.UnixSockets
				if mendable && (protection.Status != platform.Enforced) != (protection.Fix != "") {
					t.Errorf("ABI %d: %s is %s, and the fix is %q", abi, name, protection.Status, protection.Fix)
				}
				if (protection.Status == platform.Absent) != (protection.Mechanism == "") {
					t.Errorf("ABI %d: %s is %s by %q", abi, name, protection.Status, protection.Mechanism)
				}
			}
		}
	}
}

func TestReport_NamesTheKernelThatMendsEverything(t *testing.T) {
	t.Parallel()
	for abi, kernel := range map[int]string{1: "6.10", 2: "6.10", 3: "6.10", 4: "6.10"} {
		filesystem := report(Translate(strict, abi), outcome{})[platform.Filesystem]
		if !strings.Contains(filesystem.Fix, kernel) {
			t.Errorf("ABI %d: fix is %q, want one that names %s", abi, filesystem.Fix, kernel)
		}
		if lacksTruncate := strings.Contains(filesystem.Detail, "truncate"); lacksTruncate != (abi < 3) {
			t.Errorf("ABI %d: detail is %q", abi, filesystem.Detail)
		}
	}
	if fix := report(Translate(strict, 5), outcome{})[platform.Signals].Fix; !strings.Contains(fix, "6.12") {
		t.Errorf("fix of signals is %q", fix)
	}
	if fix := report(Translate(strict, 8), outcome{})[platform.UnixSockets].Fix; !strings.Contains(fix, "7.1") {
		t.Errorf("fix of unix sockets is %q", fix)
	}
}

func TestReport_WhatIsNotAskedIsMarked(t *testing.T) {
	t.Parallel()
	silent := *samples["everything"]
	silent.OnDenied = policy.Ignore
	asked, not := report(Translate(strict, 9), outcome{}), report(Translate(&silent, 9), outcome{})
	for _, name := range []string{platform.Network, platform.ProtectedPaths, platform.Denials} {
		if asked[name].NotRequested || !not[name].NotRequested {
			t.Errorf("%s: not asked is %t where it is asked and %t where it is not", name, asked[name].NotRequested,
				not[name].NotRequested)
		}
	}
	for _, name := range []string{platform.Filesystem, platform.Execute, platform.UnixSockets, platform.Signals,
		platform.Syscalls} {
		if asked[name].NotRequested || not[name].NotRequested {
			t.Errorf("%s is not a policy's to leave out", name)
		}
	}
}

func TestReport_AllOfTheFilesystemIsDegraded(t *testing.T) {
	t.Parallel()
	if got := report(Translate(samples["everything"], 20),
		outcome{})[platform.Filesystem]; got.Status != platform.Degraded {
		t.Errorf("filesystem is %s although everything is granted", got.Status)
	}
}

func TestAbsent_NamesTheCauseAndTheFix(t *testing.T) {
	t.Parallel()
	got := absent(errors.New("switched off"))
	for _, name := range platform.Protections {
		p, ok := got[name]
		if ok == (name == platform.ProcessTracking) {
			t.Errorf("%s: reported is %t", name, ok)
		}
		if ok && (p.Status != platform.Absent || p.Detail != "switched off" || p.Fix == "" || p.Mechanism != "") {
			t.Errorf("%s: %+v", name, p)
		}
	}
}

// Whether a supervisor tells a session's processes from others, or none can be
// changed, is said with the reason.
func TestReport_Priorities(t *testing.T) {
	t.Parallel()
	r := Translate(strict, 7)
	r.Unsupervised = "no reason at all"
	if got := report(r, outcome{})[platform.Syscalls].Detail; !strings.Contains(got, "but the calling thread's own") ||
		!strings.Contains(got, r.Unsupervised) {
		t.Errorf("without a supervisor: %s", got)
	}
	r.Filtering.Priorities = true
	if got := report(r, outcome{})[platform.Syscalls].Detail; strings.Contains(got, "but the calling thread's own") ||
		strings.Contains(got, r.Unsupervised) {
		t.Errorf("with a supervisor: %s", got)
	}
}

// How much of the user's inotify a session can take is said, and where nothing
// limits it, why.
func TestReport_Notices(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		own  *Own
		out  outcome
		want string
	}{
		{nil, outcome{}, "no user namespace"},
		{&Own{}, outcome{}, "no user namespace"},
		{&Own{User: true}, outcome{unlimited: "no reason at all"}, "no reason at all"},
		{&Own{User: true, Limits: map[string]int{inotifyInstances: 32}}, outcome{}, "can have 32 of"},
	} {
		r := Translate(strict, 7)
		r.Own = test.own
		if got := report(r, test.out)[platform.Syscalls].Detail; !strings.Contains(got, test.want) {
			t.Errorf("%+v: %s", test.own, got)
		}
	}
}

func TestShare(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ whole, want int }{{128, 32}, {8192, 2048}, {40, 16}, {16, 8}, {2, 1}, {1, 1}} {
		if got := share(test.whole, 4, 16); got != test.want {
			t.Errorf("of %d: %d, want %d", test.whole, got, test.want)
		}
	}
}

func TestReport_TheNetworkIsOffWhereThePolicySaysSo(t *testing.T) {
	t.Parallel()
	for _, allowed := range []bool{true, false} {
		got := report(Translate(&policy.Policy{Restricted: true, Network: policy.Network{Allowed: allowed}}, 7), outcome{})
		want := platform.Enforced
		if allowed {
			want = platform.Absent
		}
		if got[platform.Network].Status != want || got[platform.Network].NotRequested != allowed {
			t.Errorf("allowed %t: %+v", allowed, got[platform.Network])
		}
		if got[platform.Syscalls].Status != platform.Enforced {
			t.Errorf("system calls: %+v", got[platform.Syscalls])
		}
	}
}
