package lifecycle

import (
	"errors"
	"testing"
)

func TestSessionFingerprint_MarksAreItsOwn(t *testing.T) {
	t.Parallel()
	one, err := NewSessionFingerprint("8d2b-A", "/private/state/s1")
	if err != nil {
		t.Fatal(err)
	}
	other, err := NewSessionFingerprint("8d2b-B", "/private/state/s2")
	if err != nil {
		t.Fatal(err)
	}
	if len(one.Marks()) != 2 || len(other.Marks()) != 2 {
		t.Fatalf("marks: %v and %v", one.Marks(), other.Marks())
	}
	seen := map[string]bool{}
	for _, mark := range append(one.Marks(), other.Marks()...) {
		for _, side := range []string{mark.Denied, mark.Allowed} {
			if seen[side] {
				t.Errorf("%q stands for two things", side)
			}
			seen[side] = true
		}
	}
	if marks := (SessionFingerprint{}).Marks(); marks != nil {
		t.Errorf("no fingerprint has marks: %v", marks)
	}
	if marks := (SessionFingerprint{ID: "a"}).Marks(); len(marks) != 1 || marks[0].Medium != ByName {
		t.Errorf("without a directory the marks are %v", marks)
	}
}

func TestNewSessionFingerprint_RefusesWhatAProfileCannotHold(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ id, dir string }{
		{"", "/d"},
		{`a"b`, "/d"},
		{"a)b", "/d"},
		{"a b", "/d"},
		{"ü", "/d"},
		{"a", "d"},
		{"a", "/d/../e"},
		{"a", "/d/"},
	} {
		if f, err := NewSessionFingerprint(test.id, test.dir); err == nil {
			t.Errorf("%q in %q makes %v", test.id, test.dir, f)
		}
	}
}

func TestMark_CarriedBy(t *testing.T) {
	t.Parallel()
	mark := Mark{Medium: ByName, Denied: "deny", Allowed: "allow"}
	for name, test := range map[string]struct {
		denied, allowed Answer
		carried         bool
		err             error
	}{
		"the session's own":                         {No, Yes, true, nil},
		"no sandbox, or one that allows everything": {Yes, Yes, false, nil},
		"another sandbox, or a process gone":        {No, No, false, nil},
		"the other way round":                       {Yes, No, false, nil},
		"no answer about the denied side":           {Unknown, Yes, false, ErrUnknown},
		"no answer about the allowed side":          {No, Unknown, false, ErrUnknown},
		"no answer at all":                          {Unknown, Unknown, false, ErrUnknown},
	} {
		var asked []string
		carried, err := mark.CarriedBy(func(medium Medium, argument string) Answer {
			asked = append(asked, argument)
			if medium != ByName {
				t.Errorf("%s: asked by %s", name, medium)
			}
			if argument == "deny" {
				return test.denied
			}
			return test.allowed
		})
		if carried != test.carried || !errors.Is(err, test.err) {
			t.Errorf("%s: %t, %v", name, carried, err)
		}
		if asked[0] != "deny" || (len(asked) > 1 && asked[1] != "allow") {
			t.Errorf("%s: asked %v", name, asked)
		}
	}
}

// A process that ends between the questions must not be taken for one of ours:
// its number may be another process's by the time of the kill.
func TestMark_NeverMatchesADyingProcess(t *testing.T) {
	t.Parallel()
	for _, gone := range []Answer{No, Unknown} { // both have been seen of a process that is gone
		for end := range 3 {
			alive := end
			carried, _ := Mark{Denied: "deny", Allowed: "allow"}.CarriedBy(func(_ Medium, argument string) Answer {
				if alive--; alive < 0 {
					return gone
				}
				return map[string]Answer{"deny": No, "allow": Yes}[argument]
			})
			if carried != (end == 2) {
				t.Errorf("ended after %d answers, gone means %d: carried is %t", end, gone, carried)
			}
		}
	}
}
