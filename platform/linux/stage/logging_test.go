package stage

import "testing"

// Nothing of a session is logged, on any kernel that could.
func TestSilence(t *testing.T) {
	t.Parallel()
	const sameOff, subdomainsOff = 1, 4 // linux/landlock.h
	for abi, want := range map[int]uint32{6: 0, 7: sameOff | subdomainsOff, 11: sameOff | subdomainsOff} {
		if got := (Ruleset{ABI: abi}).silence(); got != want {
			t.Errorf("ABI %d: flags are %#x, want %#x", abi, got, want)
		}
	}
}
