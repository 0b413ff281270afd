package stage

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/handshake"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/linux/namespace"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/linux/seccomp"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
)

// strict requests every protection.
var strict = &policy.Policy{
	Restricted: true, Protected: []policy.Protected{{Path: "/p"}}, OnDenied: policy.Report,
	Network: policy.Network{Allowed: false},
}

func TestReport_PerVersion(t *testing.T) {
	t.Parallel()
	const e, d, a = handshake.Enforced, handshake.Degraded, handshake.Absent
	for _, test := range []struct {
		from, to                         int
		filesystem, signals, unixSockets handshake.Status
	}{
		{1, 4, d, a, a},
		{5, 5, e, a, a},
		{6, 8, e, e, d},
		{9, 20, e, e, e},
	} {
		for abi := test.from; abi <= test.to; abi++ {
			got := report(Translate(strict, abi), namespace.Result{})
			for name, want := range map[string]handshake.Status{
				handshake.Filesystem: test.filesystem, handshake.Signals: test.signals,
				handshake.UnixSockets: test.unixSockets,
				handshake.Execute:     e, handshake.Network: e, handshake.ProtectedPaths: d, handshake.Syscalls: e,
				handshake.Denials: a,
			} {
				if got[name].Status != want {
					t.Errorf("ABI %d: %s is %s, want %s", abi, name, got[name].Status, want)
				}
			}
			if want := fmt.Sprintf("landlock (ABI %d)", abi); got[handshake.Execute].Mechanism != want {
				t.Errorf("mechanism is %q, want %q", got[handshake.Execute].Mechanism, want)
			}
		}
	}
}

func TestReport_SaysWhyAndWhatHelps(t *testing.T) {
	t.Parallel()
	for _, p := range []*policy.Policy{strict, samples["everything"], samples["terminal"]} {
		for _, abi := range abis {
			for name, protection := range report(Translate(p, abi), namespace.Result{}) {
				if protection.Detail == "" {
					t.Errorf("ABI %d: %s is %s without a detail", abi, name, protection.Status)
				}
				// A newer kernel or another setting helps with these.
				fixable := name == handshake.Filesystem || name == handshake.Signals || name == handshake.UnixSockets
				if fixable && (protection.Status != handshake.Enforced) != (protection.Fix != "") {
					t.Errorf("ABI %d: %s is %s, and the fix is %q", abi, name, protection.Status, protection.Fix)
				}
				if (protection.Status == handshake.Absent) != (protection.Mechanism == "") {
					t.Errorf("ABI %d: %s is %s by %q", abi, name, protection.Status, protection.Mechanism)
				}
			}
		}
	}
}

func TestReport_NamesTheKernelThatHelps(t *testing.T) {
	t.Parallel()
	for abi, kernel := range map[int]string{1: "6.10", 2: "6.10", 3: "6.10", 4: "6.10"} {
		filesystem := report(Translate(strict, abi), namespace.Result{})[handshake.Filesystem]
		if !strings.Contains(filesystem.Fix, kernel) {
			t.Errorf("ABI %d: fix is %q, want one that names %s", abi, filesystem.Fix, kernel)
		}
		if lacksTruncate := strings.Contains(filesystem.Detail, "truncate"); lacksTruncate != (abi < 3) {
			t.Errorf("ABI %d: detail is %q", abi, filesystem.Detail)
		}
	}
	if fix := report(Translate(strict, 5), namespace.Result{})[handshake.Signals].Fix; !strings.Contains(fix, "6.12") {
		t.Errorf("fix of signals is %q", fix)
	}
	fix := report(Translate(strict, 8), namespace.Result{})[handshake.UnixSockets].Fix
	if !strings.Contains(fix, "7.1") {
		t.Errorf("fix of unix sockets is %q", fix)
	}
}

// Where a container's engine refuses namespaces and supervision, each protection
// names the same step, and no newer kernel.
func TestReport_NamesOneStepInAContainer(t *testing.T) {
	t.Parallel()
	r := Translate(strict, 7)
	r.Requested.Hosts, r.Requested.Caches, r.Requested.Hidden, r.Requested.Temporary = true, true, true, true
	r.NamespaceGap, r.NamespaceFix = "refused", ContainerFix
	r.ObservationGap, r.MediationGap, r.HostsGap, r.CacheGap = "refused", "refused", "refused", "refused"
	in := report(r, namespace.Result{})
	for _, name := range []string{
		handshake.FileTree, handshake.TemporaryFiles, handshake.HiddenPaths, handshake.ToolchainCaches,
		handshake.NetworkHosts, handshake.UnixSockets, handshake.ProtectedPaths, handshake.Denials,
	} {
		if in[name].Status == handshake.Enforced || in[name].Fix != ContainerFix {
			t.Errorf("%s is %s, and the fix is %q", name, in[name].Status, in[name].Fix)
		}
	}
	// Elsewhere the steps differ. A container need not show that it is one.
	const sysctl = "run as root: sysctl"
	r.NamespaceFix = sysctl
	lacking := report(r, namespace.Result{})
	r.NamespaceGap, r.Namespaces = "", &namespace.Setup{}
	having := report(r, namespace.Result{})
	for name, want := range map[string][2]string{
		handshake.ToolchainCaches: {sysctl, "mount a volume"}, handshake.UnixSockets: {"7.1", "7.1"},
		handshake.NetworkHosts: {sysctl, "5.19"}, handshake.Denials: {"5.19", "seccomp=unconfined"},
	} {
		fixes := [2]string{lacking[name].Fix, having[name].Fix}
		if !strings.Contains(fixes[0], want[0]) || !strings.Contains(fixes[1], want[1]) ||
			strings.Contains(fixes[1], sysctl) {
			t.Errorf("the fixes of %s are %q, without namespaces and with them, want %q", name, fixes, want)
		}
	}
}

func TestReport_MarksWhatIsNotRequested(t *testing.T) {
	t.Parallel()
	silent := *samples["everything"]
	silent.OnDenied = policy.Ignore
	asked, not := report(Translate(strict, 9), namespace.Result{}), report(Translate(&silent, 9), namespace.Result{})
	for _, name := range []string{handshake.Network, handshake.ProtectedPaths, handshake.Denials} {
		if asked[name].NotRequested || !not[name].NotRequested {
			t.Errorf("%s: NotRequested is %t if it is requested and %t if not", name, asked[name].NotRequested,
				not[name].NotRequested)
		}
	}
	for _, name := range []string{
		handshake.Filesystem, handshake.Execute, handshake.UnixSockets, handshake.Signals,
		handshake.Syscalls,
	} {
		if asked[name].NotRequested || not[name].NotRequested {
			t.Errorf("%s cannot be left out by a policy", name)
		}
	}
}

func TestReport_AllOfTheFilesystemIsDegraded(t *testing.T) {
	t.Parallel()
	if got := report(Translate(samples["everything"], 20),
		namespace.Result{})[handshake.Filesystem]; got.Status != handshake.Degraded {
		t.Errorf("filesystem is %s although everything is granted", got.Status)
	}
}

// The report says whether other processes' priorities can be changed, and why
// not.
func TestReport_Priorities(t *testing.T) {
	t.Parallel()
	r := Translate(strict, 7)
	r.SupervisionGap = "no reason at all"
	got := report(r, namespace.Result{})[handshake.Syscalls].Detail
	if !strings.Contains(got, "only the calling thread's own") ||
		!strings.Contains(got, r.SupervisionGap) {
		t.Errorf("without a supervisor: %s", got)
	}
	r.Filtering.Priorities = true
	got = report(r, namespace.Result{})[handshake.Syscalls].Detail
	if strings.Contains(got, "only the calling thread's own") ||
		strings.Contains(got, r.SupervisionGap) {
		t.Errorf("with a supervisor: %s", got)
	}
}

// The report says how many inotify instances a session can take, or why nothing
// limits them.
func TestReport_Inotify(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		own  *namespace.Setup
		out  namespace.Result
		want string
	}{
		{nil, namespace.Result{}, "no user namespace"},
		{&namespace.Setup{}, namespace.Result{}, "no user namespace"},
		{&namespace.Setup{User: true}, namespace.Result{NoLimits: "no reason at all"}, "no reason at all"},
		{
			&namespace.Setup{User: true, Limits: map[string]int{namespace.InotifyInstances: 32}},
			namespace.Result{},
			"can take 32 of",
		},
	} {
		r := Translate(strict, 7)
		r.Namespaces = test.own
		if got := report(r, test.out)[handshake.Syscalls].Detail; !strings.Contains(got, test.want) {
			t.Errorf("%+v: %s", test.own, got)
		}
	}
}

func TestReport_TheNetworkIsOffIfThePolicySaysSo(t *testing.T) {
	t.Parallel()
	for _, allowed := range []bool{true, false} {
		p := &policy.Policy{Restricted: true, Network: policy.Network{Allowed: allowed}}
		got := report(Translate(p, 7), namespace.Result{})
		want := handshake.Enforced
		if allowed {
			want = handshake.Absent
		}
		if got[handshake.Network].Status != want || got[handshake.Network].NotRequested != allowed {
			t.Errorf("allowed %t: %+v", allowed, got[handshake.Network])
		}
		if got[handshake.Syscalls].Status != handshake.Enforced {
			t.Errorf("system calls: %+v", got[handshake.Syscalls])
		}
	}
}

func TestReport_SaysWhatNamespacesGive(t *testing.T) {
	t.Parallel()
	ruleset := func(own *namespace.Setup, lacks string) Ruleset {
		r := Translate(&policy.Policy{Restricted: true, PrivateTerminals: true}, 9)
		r.Namespaces, r.NamespaceGap = own, lacks
		return r
	}
	full := report(ruleset(&namespace.Setup{Terminals: true, Network: true}, ""), namespace.Result{Terminals: true})
	if p := full[handshake.Filesystem]; p.Status != handshake.Enforced || p.Fix != "" ||
		!strings.Contains(p.Detail, "session's own") {
		t.Errorf("%+v", p)
	}
	if p := full[handshake.Network]; p.Status != handshake.Enforced || p.Fix != "" ||
		!strings.Contains(p.Mechanism, "namespace") {
		t.Errorf("%+v", p)
	}
	for name, p := range report(ruleset(nil, "no namespaces: clone: EPERM"), namespace.Result{}) {
		if name != handshake.Filesystem && name != handshake.Network {
			continue
		}
		if p.Status != handshake.Enforced || !strings.Contains(p.Detail, "clone: EPERM") ||
			!strings.Contains(p.Fix, "docs/containers.md") || strings.Contains(p.Mechanism, "namespace") {
			t.Errorf("%s: %+v", name, p)
		}
	}
	known := ruleset(nil, "no namespaces")
	known.NamespaceFix = "run one command"
	if p := report(known, namespace.Result{})[handshake.FileTree]; p.Fix != "run one command" {
		t.Errorf("a fix for this machine: %+v", p)
	}
	inherited := report(ruleset(&namespace.Setup{Terminals: true}, ""),
		namespace.Result{NoTerminals: "its number is too high"})[handshake.Filesystem]
	if !strings.Contains(inherited.Detail, "too high") || strings.Contains(inherited.Fix, "allow user namespaces") ||
		!strings.Contains(inherited.Fix, "/dev/pts") {
		t.Errorf("%+v", inherited)
	}
	granted := report(Translate(&policy.Policy{Restricted: true}, 9), namespace.Result{})[handshake.Filesystem]
	if !strings.Contains(granted.Detail, "as far as the settings grant them") || granted.Fix != "" {
		t.Errorf("%+v", granted)
	}
}

func TestReport_ProtectedPathsDependOnTheMounts(t *testing.T) {
	t.Parallel()
	ruleset := Translate(strict, 9)
	ruleset.NamespaceGap = "no namespaces here"
	if got := report(ruleset, namespace.Result{})[handshake.ProtectedPaths]; got.Status != handshake.Degraded ||
		got.Mechanism != "tripwire" || got.PreventsChanges ||
		!strings.Contains(got.Detail, "no namespaces here") || got.Fix == "" {
		t.Errorf("%+v", got)
	}
	ruleset.Namespaces = &namespace.Setup{}
	if got := report(ruleset, namespace.Result{})[handshake.ProtectedPaths]; got.Status != handshake.Enforced ||
		got.Fix != "" || !got.PreventsChanges {
		t.Errorf("%+v", got)
	}
	var many []string
	for i := range 30 {
		many = append(many, fmt.Sprint("/p/", i))
	}
	missing := namespace.MountResult{Missing: many}
	got := report(ruleset, namespace.Result{Mounts: missing})[handshake.ProtectedPaths]
	if got.Status != handshake.Degraded || !got.PreventsChanges || !strings.Contains(got.Fix, "5.19") {
		t.Errorf("%+v", got)
	}
	refused := ruleset
	refused.Filtering.Observed = seccomp.ObservedNamed
	got = report(refused, namespace.Result{Mounts: missing})[handshake.ProtectedPaths]
	if got.Status != handshake.Enforced || got.Fix != "" ||
		!strings.Contains(got.Detail, `creating one is refused; a deliberate race is reported: "/p/0"`) {
		t.Errorf("%+v", got)
	}
	mounts := namespace.MountResult{Missing: many, Symlinks: []string{"/p/link\n"}}
	got = report(ruleset, namespace.Result{Mounts: mounts})[handshake.ProtectedPaths]
	if got.Status != handshake.Degraded || !got.PreventsChanges ||
		!strings.Contains(got.Detail, `"/p/19", and 10 more`) ||
		!strings.Contains(got.Detail, `"/p/link\n"`) {
		t.Errorf("%+v", got)
	}
}

func TestReport_NamesErrata(t *testing.T) {
	t.Parallel()
	for _, errata := range [][]string{nil, {"a fault", "another"}} {
		r := Translate(strict, 7)
		r.Errata = errata
		files := report(r, namespace.Result{})[handshake.Filesystem]
		if named := strings.Contains(files.Detail, "a fault; another"); named != (errata != nil) ||
			files.Status != handshake.Enforced {
			t.Errorf("errata %q: %+v", errata, files)
		}
	}
}

func TestReport_UnixSockets(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		abi      int
		mediated bool
		want     handshake.Status
		by       string
	}{
		{9, false, handshake.Enforced, "landlock"},
		{7, true, handshake.Enforced, "seccomp"},
		{1, true, handshake.Enforced, "seccomp"},
		{7, false, handshake.Degraded, "landlock"},
		{5, false, handshake.Absent, ""},
	} {
		r := Translate(&policy.Policy{Restricted: true}, test.abi)
		r.Filtering.Sockets, r.MediationGap = test.mediated, "no reason at all"
		got := report(r, namespace.Result{})[handshake.UnixSockets]
		if got.Status != test.want || !strings.Contains(got.Mechanism, test.by) {
			t.Errorf("ABI %d, mediated %t: %+v", test.abi, test.mediated, got)
		}
		if test.want != handshake.Enforced && (!strings.Contains(got.Detail, r.MediationGap) || got.Fix == "") {
			t.Errorf("ABI %d: the reason is missing: %+v", test.abi, got)
		}
	}
}

// The row of the network does not say that it keeps a session from this machine's
// services, as nothing else of it was asked for.
func TestUnheld_NamesLocalhostIfNobodyDecides(t *testing.T) {
	t.Parallel()
	own := policy.Policy{Restricted: true, Network: policy.Network{Allowed: true, Localhost: policy.LocalhostOwn}}
	r := Translate(&own, 9)
	if got := unheld(r); !slices.Equal(got, []string{"localhost"}) {
		t.Errorf("nobody decides: %q", got)
	}
	r.Filtering.Localhost = true
	if got := unheld(r); got != nil {
		t.Errorf("the sidecar decides: %q", got)
	}
	own.Network.Localhost = policy.LocalhostAll
	if got := unheld(Translate(&own, 9)); got != nil {
		t.Errorf("nobody asks: %q", got)
	}
}
