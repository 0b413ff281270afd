package spawn

import (
	"slices"
	"strings"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/lifecycle"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
)

// The reply says which limit holds by what. A limit that nothing enforces is
// never part of "enforced".
func TestLimitsProtection_SaysWhatHolds(t *testing.T) {
	t.Parallel()
	staged := platform.Protection{Status: platform.Enforced, Mechanism: "RLIMIT_NPROC", Detail: "at most 40 processes"}
	unstaged := platform.Protection{
		Status: platform.Absent, Detail: "nothing limits the session's processes: root", Fix: "user",
	}
	most := policy.Limits{Processes: 40, Memory: policy.Memory{Bytes: 64 << 20}}
	for name, test := range map[string]struct {
		row    platform.Protection
		group  lifecycle.Limited
		status platform.Status
		says   string
		fix    string
	}{
		"all": {
			staged,
			lifecycle.Limited{Processes: true, Memory: true, CPU: true},
			platform.Enforced,
			"RLIMIT_NPROC, cgroup (pids.max), cgroup (memory.max): at most 40 processes; its memory is " +
				"limited to 64 MB", "",
		},
		"by the stage alone": {
			staged,
			lifecycle.Limited{Why: "no cgroup", Fix: "make one"},
			platform.Degraded,
			"RLIMIT_NPROC: at most 40 processes; its memory is not limited: no cgroup", "make one",
		},
		"by the group alone": {
			unstaged,
			lifecycle.Limited{Processes: true, Memory: true},
			platform.Enforced,
			"cgroup (pids.max), cgroup (memory.max): the processes and threads of the session are limited to 40; " +
				"its memory is limited to 64 MB", "",
		},
		"no controller of processes": {
			unstaged,
			lifecycle.Limited{Memory: true, CPU: true, Why: "no pids"},
			platform.Degraded,
			"cgroup (memory.max): nothing limits the session's processes: root; its memory is limited to 64 MB", "user",
		},
		"no controller of processors": {
			staged,
			lifecycle.Limited{Processes: true, Memory: true, Why: "no cpu"},
			platform.Enforced,
			"RLIMIT_NPROC, cgroup (pids.max), cgroup (memory.max): at most 40 processes; its memory is limited " +
				"to 64 MB; its share of a busy processor is not set: no cpu", "",
		},
		"nothing": {
			unstaged,
			lifecycle.Limited{Why: "no cgroup"},
			platform.Absent,
			": nothing limits the session's processes: root; its memory is not limited: no cgroup", "user",
		},
		"a machine that never limits": {unstaged, lifecycle.Limited{}, platform.Absent, ": " + unstaged.Detail, "user"},
	} {
		got := limitsProtection(test.row, most, test.group)
		if says := got.Mechanism + ": " + got.Detail; got.Status != test.status || says != test.says ||
			got.Fix != test.fix {
			t.Errorf("%s: %+v", name, got)
		}
	}
	for _, group := range []lifecycle.Limited{{Processes: true}, {Memory: true}, {Why: "x"}} {
		row := platform.Protection{Status: platform.Absent, NotRequested: true}
		if got := limitsProtection(row, policy.Limits{}, group); got != row {
			t.Errorf("not requested: %+v", got)
		}
	}
	if got := limitsProtection(staged, most, lifecycle.Limited{Why: "x"}); strings.Contains(got.Mechanism, "memory") {
		t.Errorf("memory: %+v", got)
	}
}

// limitedGroup is a group whose kernel tells of limits.
type limitedGroup struct {
	lifecycle.Group
	reached lifecycle.Reached
	asked   lifecycle.Limits
}

func (g *limitedGroup) Limit(l lifecycle.Limits, _ func()) { g.asked = l }

func (g *limitedGroup) Tracking() lifecycle.Tracking { return lifecycle.Tracking{} }

func (g *limitedGroup) Reached() lifecycle.Reached { return g.reached }

// A group reports a limit each time that it is reached again: other sessions run
// then.
func TestReachedLimits_OfAGroupAreReportedAgain(t *testing.T) {
	t.Parallel()
	group := &limitedGroup{}
	r := &running{group: group}
	r.limits.most, r.limits.again = policy.Limits{Processes: 40}, true
	told := r.limits.listen()
	next := func() (reported bool) {
		select {
		case <-told:
			return true
		default:
			return false
		}
	}
	for count, want := range []bool{false, true, true} {
		group.reached.Processes = count
		r.checkLimits()
		if got := next(); got != want {
			t.Errorf("reached %d times: reported %t", count, got)
		}
		r.checkLimits()
		if next() {
			t.Errorf("reached %d times: reported twice", count)
		}
	}
	for count := range 2 {
		if r.crowded(9, false); !next() {
			t.Errorf("connection too many %d was not reported", count)
		}
	}
	for range 10 { // nobody listens
		r.crowded(9, false)
	}
	if got := r.limits.list(); len(got) != 2 {
		t.Errorf("the limits of the group: %+v", got)
	}
}

// Each limit is told once, whoever tells, and before or after somebody listens.
func TestReachedLimits_AreToldOnce(t *testing.T) {
	t.Parallel()
	group := &limitedGroup{}
	r := &running{group: group}
	r.limits.most = policy.Limits{Processes: 40, Memory: policy.Memory{Bytes: 64 << 20}}
	r.limits.whole = true
	r.checkLimits()
	r.heardExhausted() // nobody asked the output
	group.reached.Processes = 1
	r.checkLimits()
	told := r.limits.listen()
	group.reached.Memory = 1
	for range 3 {
		r.checkLimits()
	}
	r.limits.end()
	r.checkLimits()
	var all []Reached
	for one := range told {
		all = append(all, one)
	}
	want := []Reached{{Key: ProcessesKey, Most: 40}, {Key: MemoryKey, Most: 64 << 20, Whole: true}}
	if !slices.Equal(all, want) || !slices.Equal(r.limits.list(), want) {
		t.Errorf("told %+v", all)
	}
	printed := &running{limits: reachedLimits{most: policy.Limits{Processes: 40}, unheard: true}}
	printed.heardExhausted()
	printed.heardExhausted()
	if got := printed.limits.list(); !slices.Equal(got, []Reached{{Key: ProcessesKey, Most: 40, Printed: true}}) {
		t.Errorf("printed: %+v", got)
	}
}

// A tool is limited as a whole. A group that tells of its limit has one process
// less than RLIMIT_NPROC, of which nobody is told, but never a limit of 0, which
// would be none.
func TestLimit_AsksTheGroup(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		status     platform.Status
		most, want int
		tool       bool
	}{
		{platform.Enforced, 40, 39, true},
		{platform.Absent, 40, 40, false},
		{platform.Enforced, 1, 1, false},
		{platform.Enforced, 0, 0, true},
	} {
		group := &limitedGroup{}
		a := &attempt{
			spawner: &Spawner{},
			request: Request{Tool: test.tool, Policy: policy.Policy{Limits: policy.Limits{Processes: test.most}}},
			running: &running{group: group, outcome: Outcome{Enforcement: platform.Enforcement{
				Protections: Protections{platform.Limits: {Status: test.status}},
			}}},
		}
		a.limit()
		if group.asked.Processes != test.want || group.asked.Whole != test.tool {
			t.Errorf("%+v: %+v", test, group.asked)
		}
	}
}
