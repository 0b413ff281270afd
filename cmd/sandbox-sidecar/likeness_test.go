//go:build unix

package main

import (
	"slices"
	"strconv"
	"testing"
	"time"
)

// The first command in a new sandbox says what is known of why it is new. An agent's
// first sandbox is none that needs a reason.
func TestWhyNew(t *testing.T) {
	t.Parallel()
	like := likeness{"program", "project", "policy", "audit", "around", "circumstances"}
	with := func(change func(*likeness)) likeness {
		other := like
		change(&other)
		return other
	}
	settings := with(func(l *likeness) { l.Policy = "x" })
	around, audit := with(func(l *likeness) { l.Around = "x" }), with(func(l *likeness) { l.Audit = "x" })
	program := with(func(l *likeness) { l.Program = "x" })
	limits := with(func(l *likeness) { l.Circumstances = "x" })
	const same = "the old one has ended"
	elsewhere := with(func(l *likeness) { l.Project, l.Policy = "x", "x" })
	for name, c := range map[string]struct {
		before []kept
		want   string
	}{
		"the first":       {nil, ""},
		"an hour":         {[]kept{{Like: like, Ended: endedIdle}}, "nothing ran for an hour"},
		"retired":         {[]kept{{Like: like, Ended: endedRetired}}, "other settings came since"},
		"too many":        {[]kept{{Like: like, Ended: endedSurplus}}, "the agent has used 16 others since"},
		"a silent init":   {[]kept{{Like: like, Ended: endedSilent}}, "the old one did not answer"},
		"a killed keeper": {[]kept{{Like: like}}, same},
		"other settings":  {[]kept{{Like: settings}}, "the settings, or what they protect here, have changed"},
		"another project": {[]kept{{Like: elsewhere}}, "this is another project"},
		"another file":    {[]kept{{Like: around}}, "a path or agent has changed"},
		"another trail":   {[]kept{{Like: audit}}, "the audit trail has changed"},
		"another version": {[]kept{{Like: program}}, "this program was updated"},
		"other limits":    {[]kept{{Like: limits}}, "its limits or rights are others"},
		"the nearest": {
			[]kept{{Like: elsewhere, Began: 3}, {Like: settings, Began: 1}},
			"the settings, or what they protect here, have changed",
		},
		"the same, though": {[]kept{{Like: settings, Began: 3}, {Like: like, Began: 1}}, same},
	} {
		if got := whyNew(c.before, like); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// Only a sandbox that differs in its settings is replaced by a newer one.
func TestLikeness_HasOtherSettings(t *testing.T) {
	t.Parallel()
	like := likeness{"program", "project", "policy", "audit", "around", "circumstances"}
	for name, c := range map[string]struct {
		change func(*likeness)
		want   bool
	}{
		"nothing":       {func(*likeness) {}, false},
		"policy":        {func(l *likeness) { l.Policy = "x" }, true},
		"around":        {func(l *likeness) { l.Around = "x" }, true},
		"audit":         {func(l *likeness) { l.Audit = "x" }, true},
		"program":       {func(l *likeness) { l.Program = "x" }, true},
		"project":       {func(l *likeness) { l.Project = "x" }, false},
		"circumstances": {func(l *likeness) { l.Policy, l.Circumstances = "x", "x" }, false},
	} {
		other := like
		c.change(&other)
		if got := like.hasOtherSettings(other); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// Of too many sandboxes those end that were not used for the longest time, and never
// the one that was just made. Those that have ended do not count.
func TestSurplus(t *testing.T) {
	t.Parallel()
	this := kept{Socket: "this", used: time.Unix(1, 0)}
	all := []kept{this}
	add := func(used int, why ended) {
		all = append(all, kept{Socket: strconv.Itoa(used), used: time.Unix(int64(used), 0), Ended: why})
	}
	for used := mostKept; used > 1; used-- { // as many as are kept, with this one
		add(used, "")
	}
	add(100, endedIdle)
	if got := surplus(slices.Clone(all), this); len(got) != 0 {
		t.Errorf("control: with %d sandboxes there is a surplus: %+v", mostKept, got)
	}
	add(200, "")
	add(0, "")
	got := surplus(all, this)
	if len(got) != 2 || got[0].Socket != "2" || got[1].Socket != "0" {
		t.Errorf("these end: %+v", got)
	}
}
