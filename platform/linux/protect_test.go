package linux

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
)

func TestKeepOf_PinsWhatCouldBeMoved(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		writable          []string
		protected, pinned string
	}{
		{[]string{"/h/p"}, "/h/p/.git/hooks /h/p/.git/config", "/h/p/.git"},
		{[]string{"/h/p"}, "/h/p/.envrc", ""},
		{[]string{"/h/p"}, "/h/p/a/b/c /h/p/a/d", "/h/p/a /h/p/a/b"},
		{[]string{"/h/p"}, "/h/p/a /h/p/a/b/c", ""}, // all of it is read-only
		{[]string{"/h"}, "/h/p/.git/hooks", "/h/p /h/p/.git"},
		{[]string{"/"}, "/h/p/x", "/h /h/p"},
		{[]string{"/h/p", "/h/main/.git"}, "/h/main/.git/hooks /h/main/.git/worktrees/w/gitdir /h/p/.git",
			"/h/main/.git/worktrees /h/main/.git/worktrees/w"},
		{nil, "/h/p/.git/hooks", ""},
	} {
		p := &policy.Policy{}
		for _, path := range test.writable {
			p.Rules = append(p.Rules, policy.Rule{Path: path, Access: policy.ReadWrite})
		}
		for path := range strings.FieldsSeq(test.protected) {
			p.Protected = append(p.Protected, policy.Protected{Path: path})
		}
		if got := strings.Join(keepOf(p).Pinned, " "); got != test.pinned {
			t.Errorf("%s, with %s writable: pins %q, want %q", test.protected, test.writable, got, test.pinned)
		}
	}
}

func TestKeep_ArrivesByteForByte(t *testing.T) {
	t.Parallel()
	keep := Keep{Protected: []string{"/\xff\n\""}, Pinned: []string{"/a", "/\xfe"}}
	data, err := json.Marshal(keep)
	var got Keep
	if err == nil {
		err = json.Unmarshal(data, &got)
	}
	if err != nil || !slices.Equal(got.Protected, keep.Protected) || !slices.Equal(got.Pinned, keep.Pinned) {
		t.Errorf("%v: %q", err, got)
	}
}

func TestTranslate_GuardedAccessGoesWhereNothingIsProtected(t *testing.T) {
	t.Parallel()
	p := &policy.Policy{Rules: []policy.Rule{
		{Path: "/outside", Access: policy.Read | policy.Write, Guarded: policy.Write},
		{Path: "/inside", Access: policy.ReadWrite},
	}}
	ruleset := Translate(p, 9)
	if ruleset.Rules[0].Access != fsRead|fsWrite {
		t.Errorf("with protection: %s", ruleset.Rules[0].Access)
	}
	ruleset.dropGuarded(p)
	if ruleset.Rules[0].Access != fsRead || ruleset.Rules[1].Access != fsRead|fsWrite|fsExecute {
		t.Errorf("without protection: %s, %s", ruleset.Rules[0].Access, ruleset.Rules[1].Access)
	}
}

func TestReport_ProtectedPathsAreWhatTheMountsKeep(t *testing.T) {
	t.Parallel()
	ruleset := Translate(strict, 9)
	ruleset.Lacks = "no namespaces here"
	if got := report(ruleset, outcome{})[platform.ProtectedPaths]; got.Status != platform.Degraded ||
		got.Mechanism != "tripwire" ||
		!strings.Contains(got.Detail, "no namespaces here") || got.Fix == "" {
		t.Errorf("%+v", got)
	}
	ruleset.Own = &Own{}
	if got := report(ruleset, outcome{})[platform.ProtectedPaths]; got.Status != platform.Enforced || got.Fix != "" {
		t.Errorf("%+v", got)
	}
	var many []string
	for i := range 30 {
		many = append(many, fmt.Sprint("/p/", i))
	}
	got := report(ruleset, outcome{kept: kept{missing: many, links: []string{"/p/link\n"}}})[platform.ProtectedPaths]
	if got.Status != platform.Degraded || !strings.Contains(got.Detail, `"/p/19", and 10 more`) ||
		!strings.Contains(got.Detail, `"/p/link\n"`) {
		t.Errorf("%+v", got)
	}
}
