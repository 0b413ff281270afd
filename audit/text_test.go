package audit

import "testing"

// A line that lists targets shows them, and one of later accesses their number.
func TestDescribe_Accesses(t *testing.T) {
	t.Parallel()
	for want, event := range map[string]Event{
		"refused: connect a:1 by p (2 times)": {
			Event: Refused, Access: "connect", Target: "a:1", Process: "p", Count: 2,
		},
		"refused: connect a:1, b:2 (7 times)": {
			Event: Refused, Access: "connect", Targets: []string{"a:1", "b:2"}, Count: 7,
		},
		"connected: a:1, b:2": {Event: Connected, Targets: []string{"a:1", "b:2"}},
		"asked: read /a, /b: denied (3 times)": {
			Event: Asked, Access: "read", Targets: []string{"/a", "/b"}, Answer: "deny", Count: 3,
		},
		"asked: read /d/a by p: allowed with all of /d for the session": {
			Event: Asked, Access: "read", Target: "/d/a", Process: "p", Answer: "directory", Detail: "/d", Count: 1,
		},
		"refused: 9 more":   {Event: Refused, More: 9},
		"connected: 9 more": {Event: Connected, More: 9},
		"asked: 9 more":     {Event: Asked, More: 9},
	} {
		if got := Describe(event); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
