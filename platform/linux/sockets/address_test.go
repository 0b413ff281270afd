package sockets

import (
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("p", 108)
	for _, test := range []struct {
		raw  string
		want address
		ok   bool
	}{
		{"\x01\x00/a\x00", address{path: "/a"}, true},
		{"\x01\x00/a", address{path: "/a"}, true},
		{"\x01\x00/a\x00/secret\x00", address{path: "/a"}, true},
		{"\x01\x00" + long, address{path: long}, true},
		{"\x01\x00" + long + "p", address{}, false},
		{"\x01\x00\x00name", address{abstract: "name", isAbstract: true}, true},
		{"\x01\x00\x00na\x00me\x00", address{abstract: "na\x00me\x00", isAbstract: true}, true},
		{"\x01\x00\x00", address{isAbstract: true}, true},
		{"\x01\x00", address{}, false},
		{"\x01", address{}, false},
		{"", address{}, false},
	} {
		got, ok := parse([]byte(test.raw))
		if got != test.want || ok != test.ok {
			t.Errorf("%q is %+v, %t, want %+v, %t", test.raw, got, ok, test.want, test.ok)
		}
		if ok {
			if again, ok := parse(got.encode()); ok != (len(got.encode()) <= unixLength) || ok && again != got {
				t.Errorf("%q is %+v when written and read again", test.raw, again)
			}
		}
	}
	if got := family([]byte("\x0a\x00\x00")); got != 10 {
		t.Errorf("family is %d", got)
	}
	if got := family([]byte("\x0a")); got != 0 {
		t.Errorf("the family of half an address is %d", got)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte("\x01\x00/a\x00b"))
	f.Add([]byte("\x01\x00\x00a\x00b"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		got, ok := parse(raw)
		switch {
		case !ok && got != address{}:
			t.Errorf("%q is invalid and %+v", raw, got)
		case ok && got.isAbstract && got.path != "", ok && strings.ContainsRune(got.path, 0), ok &&
			len(got.path)+pathOffset > unixLength:
			t.Errorf("%q is %+v", raw, got)
		}
	})
}
