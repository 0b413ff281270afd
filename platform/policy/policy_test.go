package policy

import (
	"strings"
	"testing"
)

func TestContains_IsByWholeNames(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		dir, path string
		want      bool
	}{
		{"/a", "/a", true},
		{"/a", "/a/b", true},
		{"/a", "/ab", false},
		{"/a/b", "/a", false},
		{"/", "/", true},
		{"/", "/a", true},
		{"/a", "/", false},
		{"/a", "", false},
		{"/a\n\"b", "/a\n\"b/c", true},
	} {
		if got := Contains(test.dir, test.path); got != test.want {
			t.Errorf("Contains(%q, %q) = %t", test.dir, test.path, got)
		}
	}
}

func TestFind_GrantsAddUpAlongThePath(t *testing.T) {
	t.Parallel()
	p := Policy{Rules: []Rule{
		{Path: "/a", Access: Read}, {Path: "/a/b", Access: Write}, {Path: "/a/b/c", Access: Execute},
	}}
	for _, test := range []struct {
		access Access
		path   string
		want   string
		ok     bool
	}{
		{Read, "/a/x", "/a", true},
		{Write, "/a/x", "", false},
		{Write, "/a/b/x", "/a/b", true},
		{Read, "/a/b/x", "/a", true},
		{ReadWrite, "/a/b/c", "/a/b/c", true},
		{ReadWrite, "/a/b/x", "/a/b", false},
		{Read, "/ab", "", false},
		{Device, "/a/b/c", "", false},
	} {
		rule, ok := p.Find(test.access, test.path)
		if rule.Path != test.want || ok != test.ok {
			t.Errorf("Find(%s, %q) = %q, %t; want %q, %t", test.access, test.path, rule.Path, ok, test.want, test.ok)
		}
	}
}

// full is a policy in which every field has a value.
func full() *Policy {
	origin := Origin{File: "/f", Key: "k", Line: 3}
	return &Policy{
		Restricted: true, Project: "/p", Rules: []Rule{{
			Path: "/p", Access: ReadWrite,
			Origin: origin,
		}}, PrivateRuntimeDir: true, PrivateTerminals: true,
		Network: Network{Allowed: true, Origin: origin}, UnixSockets: []UnixSocket{{Path: "/s", Origin: origin}},
		Environment: Environment{
			Allowed: []string{"A"},
			Origin:  origin,
		}, Protected: []Protected{{Path: "/p/.git", Origin: origin}},
		RequireProtected: true, OnUnavailable: Warn, OnDenied: Ask,
	}
}

func TestID_ChangesWithEveryEffect(t *testing.T) {
	t.Parallel()
	base := full().ID()
	for name, change := range map[string]func(*Policy){
		"restricted":  func(p *Policy) { p.Restricted = false },
		"tracking":    func(p *Policy) { p.TrackBySandbox = true },
		"project":     func(p *Policy) { p.Project = "/q" },
		"path":        func(p *Policy) { p.Rules[0].Path = "/q" },
		"access":      func(p *Policy) { p.Rules[0].Access = Read },
		"guarded":     func(p *Policy) { p.Rules[0].Guarded = Write },
		"link":        func(p *Policy) { p.Protected[0].Link = true },
		"reopened":    func(p *Policy) { p.Reopened = []string{"/p/.git/x"} },
		"required":    func(p *Policy) { p.RequireProtected = false },
		"runtime":     func(p *Policy) { p.PrivateRuntimeDir = false },
		"terminals":   func(p *Policy) { p.PrivateTerminals = false },
		"network":     func(p *Policy) { p.Network.Allowed = false },
		"socket":      func(p *Policy) { p.UnixSockets[0].Path = "/t" },
		"abstract":    func(p *Policy) { p.UnixSockets[0] = UnixSocket{Abstract: "/s"} },
		"variable":    func(p *Policy) { p.Environment.Allowed[0] = "B" },
		"protected":   func(p *Policy) { p.Protected = nil },
		"unavailable": func(p *Policy) { p.OnUnavailable = Refuse },
		"denied":      func(p *Policy) { p.OnDenied = Ignore },
	} {
		changed := full()
		change(changed)
		if changed.ID() == base {
			t.Errorf("%s does not change the ID", name)
		}
	}
}

func TestID_IgnoresOriginsAndUnrestrictedPolicies(t *testing.T) {
	t.Parallel()
	other := full()
	moved := Origin{File: "/g", Key: "l", Line: 9}
	other.Rules[0].Origin, other.Network.Origin, other.UnixSockets[0].Origin = moved, moved, moved
	other.Environment.Origin, other.Protected[0].Origin = moved, moved
	if other.ID() != full().ID() {
		t.Error("origins change the ID")
	}
	if other.Rules[0].Origin != moved {
		t.Error("ID changes the policy")
	}
	off := full()
	off.Restricted = false
	if off.ID() != (&Policy{}).ID() {
		t.Error("two policies that restrict nothing have different IDs")
	}
	off.TrackBySandbox = true
	if off.ID() == (&Policy{}).ID() {
		t.Error("a policy that tracks by a sandbox has the ID of one that does nothing")
	}
}

func TestOrigin_String(t *testing.T) {
	t.Parallel()
	if got := (Origin{File: "/f", Key: "k", Line: 3}).String(); got != "k (/f:3)" {
		t.Error(got)
	}
	if got := (Origin{File: OriginBuiltIn, Key: "k"}).String(); got != "k (built-in defaults)" {
		t.Error(got)
	}
}

// A project's file chooses patterns, and a session chooses names: no pair of
// them may take long.
func TestMatchName(t *testing.T) {
	t.Parallel()
	for _, one := range []struct {
		pattern, name string
		want          bool
	}{
		{"a", "a", true},
		{"a", "ab", false},
		{"*", "", true},
		{"**", "x", true},
		{"a*a", "a", false},
		{"a*a", "aba", true},
		{"*.x", "a.x", true},
		{"*.x", ".xy", false},
		{"*ab*b", "abab", true},
		{"a*b*c", "abcbc", true},
		{"a*b*c", "acb", false},
		{strings.Repeat("*a", 40) + "b", strings.Repeat("a", 250), false},
		{strings.Repeat("*a", 40), strings.Repeat("a", 250), true},
	} {
		if got := MatchName(one.pattern, one.name); got != one.want {
			t.Errorf("%q matches %q: %t", one.pattern, one.name, got)
		}
	}
}
