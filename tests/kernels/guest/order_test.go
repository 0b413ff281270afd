//go:build linux

package main

import (
	"slices"
	"testing"
)

// The order of each suite arrives: its contexts, and its tests.
func TestParseSuites(t *testing.T) {
	t.Parallel()
	got := parseSuites("tests/attack@@,platform/linux@root@,tests/lifetime@root+user-plain@TestA+TestB,spawn")
	want := []suite{
		{pkg: "tests/attack"},
		{pkg: "platform/linux", contexts: []string{"root"}},
		{pkg: "tests/lifetime", contexts: []string{"root", "user-plain"}, tests: []string{"TestA", "TestB"}},
		{pkg: "spawn"},
	}
	if !slices.EqualFunc(got, want, func(a, b suite) bool {
		return a.pkg == b.pkg && slices.Equal(a.contexts, b.contexts) && slices.Equal(a.tests, b.tests)
	}) {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// A suite without contexts runs wherever not only doctor does.
func TestRuns(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		who  context
		s    suite
		want bool
	}{
		{context{name: "root"}, suite{}, true},
		{context{name: "root"}, suite{contexts: []string{"user-plain", "root"}}, true},
		{context{name: "root"}, suite{contexts: []string{"user-plain"}}, false},
		{context{name: "docker", place: docker}, suite{}, false},
	} {
		if got := test.who.runs(test.s); got != test.want {
			t.Errorf("%s, %v: %t", test.who.name, test.s.contexts, got)
		}
	}
}
