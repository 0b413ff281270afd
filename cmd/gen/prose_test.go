//go:build unix

package main

import (
	"slices"
	"testing"
)

func TestProse_SpeaksWithoutGoNames(t *testing.T) {
	t.Parallel()
	p := &Package{
		Codes:  []*Code{{GoName: "CodeSessionNotFound", Value: "-32010"}},
		Consts: map[string]string{"Version": "1"},
	}
	for _, tt := range []struct{ name, doc, want string }{
		{"the subject becomes the JSON name", "SessionID names it.", "`sessionId` names it."},
		{"a heading goes", "SessionID: the session.", "The session."},
		{"a longer name is another one", "SessionIDs are many.", "SessionIDs are many."},
		{"an error code becomes its number", "A second one gets CodeSessionNotFound.", "A second one gets -32010."},
		{"a constant becomes its value", "SessionID is Version.", "`sessionId` is 1."},
		{"a field of a type is no constant", "See ClientInfo.Version.", "See ClientInfo.Version."},
		{
			"links lose their brackets", "See [Store] and [policy.Policy], not [] or [string].",
			"See Store and policy.Policy, not [] or [string].",
		},
		{"nothing stays nothing", "", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := p.prose(tt.doc, "SessionID", "sessionId"); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestFieldProse_DropsTheSubjectBesideTheName(t *testing.T) {
	t.Parallel()
	for doc, want := range map[string]string{
		"Path is absolute.":     "Absolute.",
		"Path are two.":         "Two.",
		"Path replaces a file.": "`path` replaces a file.",
	} {
		if got := fieldProse(&Package{}, &Field{GoName: "Path", Name: "path", Doc: doc}); got != want {
			t.Errorf("%q: got %q, want %q", doc, got, want)
		}
	}
}

func TestWrap_BreaksAtSpacesAndKeepsLines(t *testing.T) {
	t.Parallel()
	got := wrap(unwrap("one two\nthree\n\nlongerthanten x"), 10)
	if want := []string{"one two", "three", "", "longerthanten", "x"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestSnakeCase(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"Spawn": "spawn", "SettingsGet": "settings_get", "PTYError": "pty_error", "SessionID": "session_id",
	} {
		if got := snakeCase(name); got != want {
			t.Errorf("%s: got %s, want %s", name, got, want)
		}
	}
}

func TestCell_FitsIntoATable(t *testing.T) {
	t.Parallel()
	if got, want := cell("a|b\n\nc"), `a\|b c`; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
