package compile

import (
	"strings"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/document"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/resolve/resolvetest"
)

// The lower limit of the user and the project counts. What is no number within
// the range, or missing, leaves the limit as it is.
func TestLimits_AProjectOnlyLowersThem(t *testing.T) {
	t.Parallel()
	f := resolvetest.Tree(t, map[string]string{"/home/u/project/": ""})
	const user, project, builtIn = userFile, projectFile, policy.OriginBuiltIn
	for _, test := range []struct {
		user, project string
		want          int
		from          string
	}{
		{`{}`, ``, 4096, builtIn},
		{`{"limits": null}`, ``, 4096, builtIn},
		{`{"limits": {}}`, ``, 4096, builtIn},
		{`{"limits": {"processes": null}}`, ``, 4096, builtIn},
		{`{"limits": {"processes": 9000}}`, ``, 9000, user},
		{`{"limits": {"processes": 9000}, "tool": {"limits": {"processes": 50}}}`, ``, 50, user},
		{`{}`, `{"limits": {"processes": 40}}`, 40, project},
		{`{"limits": {"processes": 9000}}`, `{"limits": {"processes": 40}}`, 40, project},
		{`{"limits": {"processes": 40}}`, `{"limits": {"processes": 9000}}`, 40, user},
		{`{}`, `{"limits": {"processes": 9000}}`, 4096, builtIn},
		{`{}`, `{"limits": {"processes": 0}}`, 4096, builtIn},
	} {
		c := snapshotOf(t, f, test.user, test.project).Compile(document.KindTool)
		if got := c.Policy.Limits; got.Processes != test.want || got.Origin.File != test.from {
			t.Errorf("user %s, project %s: %d from %s, want %d from %s", test.user, test.project, got.Processes,
				got.Origin.File, test.want, test.from)
		}
	}
}

// A number that is wrong lifts no limit, and says so with its line. Tools do not
// start meanwhile.
func TestLimits_AWrongNumberCountsForNothing(t *testing.T) {
	t.Parallel()
	f := resolvetest.Tree(t, map[string]string{"/home/u/project/": ""})
	const expected = "expected a whole number from 1 to 4194304, found "
	for value, want := range map[string]string{
		`{"processes": 0}`:                    expected + `"0"`,
		`{"processes": -1}`:                   expected + `"-1"`,
		`{"processes": 4194305}`:              expected + `"4194305"`,
		`{"processes": 1e3}`:                  expected + `"1e3"`,
		`{"processes": 99999999999999999999}`: expected + `"99999999999999999999"`,
		`{"processes": "100"}`:                expected + "a string",
		`{"processes": true}`:                 expected + "a boolean",
		`{"process": 100}`:                    `unknown setting, did you mean "processes"?`,
		`100`:                                 "expected an object, found a number",
	} {
		c := snapshotOf(t, f, "{\"enabled\": true,\n\"limits\": "+value+"}", "").Compile(document.KindTool)
		if got := c.Policy.Limits.Processes; got != 4096 {
			t.Errorf("%s: the limit is %d", value, got)
		}
		if c.Doubt == nil || !c.Doubt.Refused || c.Doubt.Line != 2 {
			t.Errorf("%s: doubt %+v", value, c.Doubt)
		}
		if got := said(c, userFile); !strings.Contains(got, want) {
			t.Errorf("%s: diagnostics: %s", value, got)
		}
	}
}

func TestLimits_ATrustedProjectAsksForAHigherOne(t *testing.T) {
	t.Parallel()
	f := resolvetest.Tree(t, map[string]string{"/home/u/project/": ""})
	s := trusting(t, f, `{"enabled": true}`, `{"limits": {"processes": 9000}}`)
	c := s.Compile(document.KindTool)
	if got := c.Policy.Limits.Processes; got != 9000 {
		t.Errorf("the limit is %d", got)
	}
	if got := describeAsks(s.evaluation(document.KindTool).asks); got !=
		"limits.processes 9000: a session may have 9000 processes and threads\n" {
		t.Errorf("asks: %q", got)
	}
}

// An amount of memory in percent and one in bytes both count, as nobody knows
// here which is the lower.
func TestLimits_AProjectOnlyLowersMemoryAndWeight(t *testing.T) {
	t.Parallel()
	f := resolvetest.Tree(t, map[string]string{"/home/u/project/": ""})
	for _, test := range []struct {
		user, project string
		want          policy.Memory
		weight        int
	}{
		{`{}`, ``, policy.Memory{Percent: 75}, 100},
		{`{"limits": {"processes": 50}}`, ``, policy.Memory{Percent: 75}, 100},
		{`{"limits": {"memory": "8G", "cpu_weight": 300}}`, ``, policy.Memory{Bytes: 8 << 30}, 300},
		{`{"limits": {"memory": "8G"}}`, `{"limits": {"memory": "9G"}}`, policy.Memory{Bytes: 8 << 30}, 100},
		{`{"limits": {"memory": "8G"}}`, `{"limits": {"memory": "64M"}}`, policy.Memory{Bytes: 64 << 20}, 100},
		{
			`{"limits": {"memory": "8G"}}`, `{"limits": {"memory": "90%", "cpu_weight": 20}}`,
			policy.Memory{Bytes: 8 << 30, Percent: 90},
			20,
		},
		{`{}`, `{"limits": {"memory": "100%", "cpu_weight": 200}}`, policy.Memory{Percent: 75}, 100},
		{`{}`, `{"limits": {"memory": "", "cpu_weight": null}}`, policy.Memory{Percent: 75}, 100},
	} {
		got := snapshotOf(t, f, test.user, test.project).Compile(document.KindTool).Policy.Limits
		if got.Memory != test.want || got.CPUWeight != test.weight {
			t.Errorf("user %s, project %s: %+v, want %+v and %d", test.user, test.project, got, test.want, test.weight)
		}
	}
}

func TestLimits_AProjectOnlyLowersConnections(t *testing.T) {
	t.Parallel()
	f := resolvetest.Tree(t, map[string]string{"/home/u/project/": ""})
	for _, test := range []struct {
		user, project string
		want          int
	}{
		{`{}`, ``, 256},
		{`{"limits": {"connections": 900}}`, `{"limits": {"connections": 901}}`, 900},
		{`{"limits": {"connections": 900}}`, `{"limits": {"connections": 8}}`, 8},
		{`{"limits": {"connections": 0}}`, `{"limits": {"connections": 5000}}`, 256},
	} {
		got := snapshotOf(t, f, test.user, test.project).Compile(document.KindTool).Policy.Limits.Connections
		if got != test.want {
			t.Errorf("user %s, project %s: %d, want %d", test.user, test.project, got, test.want)
		}
	}
	s := trusting(t, f, `{"enabled": true}`, `{"limits": {"connections": 900}}`)
	if got := s.Compile(document.KindTool).Policy.Limits.Connections; got != 900 {
		t.Errorf("trusted: %d", got)
	}
	if got := describeAsks(s.evaluation(document.KindTool).asks); got !=
		"limits.connections 900: a session may have 900 connections to hosts at a time\n" {
		t.Errorf("asks: %q", got)
	}
}

func TestLimits_AWrongAmountLiftsNone(t *testing.T) {
	t.Parallel()
	f := resolvetest.Tree(t, map[string]string{"/home/u/project/": ""})
	for _, value := range []string{
		`""`, `"0%"`, `"101%"`, `"63M"`, `"8"`, `"8g"`, `"8 G"`, `"-8G"`, `"1.5G"`, `"9999999G"`,
		`"8G\u0000"`, `"8G\n"`, `64`, `true`, `[]`, `{}`,
	} {
		c := snapshotOf(t, f, `{"enabled": true, "limits": {"memory": `+value+`}}`, "").Compile(document.KindTool)
		if got := c.Policy.Limits.Memory; got != (policy.Memory{Percent: 75}) {
			t.Errorf("%s: the limit is %+v", value, got)
		}
		if c.Doubt == nil || !c.Doubt.Refused {
			t.Errorf("%s: doubt %+v", value, c.Doubt)
		}
		const want = `expected 64M or more, as "512M" or "8G", or "1%" to "100%", found`
		if got := said(c, userFile); !strings.Contains(got, want) {
			t.Errorf("%s: diagnostics: %s", value, got)
		}
	}
}

func TestLimits_ATrustedProjectAsksForMoreMemory(t *testing.T) {
	t.Parallel()
	f := resolvetest.Tree(t, map[string]string{"/home/u/project/": ""})
	s := trusting(t, f, `{"enabled": true}`, `{"limits": {"memory": "90%", "cpu_weight": 900}}`)
	got := s.Compile(document.KindTool).Policy.Limits
	if got.Memory != (policy.Memory{Percent: 90}) || got.CPUWeight != 900 {
		t.Errorf("the limits are %+v", got)
	}
	if got := describeAsks(s.evaluation(document.KindTool).asks); got !=
		"limits.memory \"90%\": a session may have 90% of memory\n"+
			"limits.cpu_weight 900: a session's share of a busy processor may be 900, compared with 100\n" {
		t.Errorf("asks: %q", got)
	}
}
