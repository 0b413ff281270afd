package lifecycle

import "testing"

func TestParseStat(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		stat    string
		state   byte
		session int
		ok      bool
	}{
		"ordinary":             {"7 (sh) S 1 7 5 34816 9 4194304 0", 'S', 5, true},
		"blanks in the name":   {"7 (a b) Z 1 7 6 0", 'Z', 6, true},
		"parentheses in it":    {"7 (x) R 9 9 9 ) S 1 7 8 0", 'S', 8, true},
		"newline in it":        {"7 (x\n) T 1 7 9 0", 'T', 9, true},
		"too short":            {"7 (sh) S 1 7", 0, 0, false},
		"no name":              {"7 sh S 1 7 5", 0, 0, false},
		"empty":                {"", 0, 0, false},
		"session not a number": {"7 (sh) S 1 7 x 0", 'S', 0, false},
	} {
		state, session, ok := parseStat([]byte(test.stat))
		if ok != test.ok || ok && (state != test.state || session != test.session) {
			t.Errorf("%s: %c %d %t", name, state, session, ok)
		}
	}
}
