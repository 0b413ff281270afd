package stage

import "testing"

// A session logs the denials of its programs if the sidecar reads the log, and
// nothing otherwise.
func TestLogging_OnlyIfTheLogIsRead(t *testing.T) {
	t.Parallel()
	const sameOff, newOn, subdomainsOff = 1, 2, 4 // linux/landlock.h
	for _, test := range []struct {
		ruleset Ruleset
		want    uint32
	}{
		{Ruleset{ABI: 6}, 0},
		{Ruleset{ABI: 6, Logged: true}, 0},
		{Ruleset{ABI: 7}, sameOff | subdomainsOff},
		{Ruleset{ABI: 11}, sameOff | subdomainsOff},
		{Ruleset{ABI: 7, Logged: true}, sameOff | newOn | subdomainsOff},
	} {
		if got := test.ruleset.logging(); got != test.want {
			t.Errorf("ABI %d, read: %t: flags are %#x, want %#x", test.ruleset.ABI, test.ruleset.Logged, got, test.want)
		}
	}
}
