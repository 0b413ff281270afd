package proc

import (
	"os"
	"testing"
)

func TestBeyondKilling_NeedsAWaitWithTheSignalPending(t *testing.T) {
	t.Parallel()
	for status, want := range map[string]bool{
		"Name:\tcat\nState:\tD (disk sleep)\nSigPnd:\t0000000000000100\n": true,
		"Name:\tcat\nState:\tD (disk sleep)\nSigPnd:\t0000000000000000\n": false, // nobody has killed it
		"Name:\tcat\nState:\tS (sleeping)\nSigPnd:\t0000000000000100\n":   false, // it is about to die
		"Name:\tcat\nState:\tR (running)\nSigPnd:\t0000000000000100\n":    false,
		"Name:\tcat\nState:\tZ (zombie)\n":                                true,
		"":                                                                false,
	} {
		if got := beyondKilling(status); got != want {
			t.Errorf("%q: %t", status, got)
		}
	}
	if isStuck(os.Getpid()) {
		t.Error("this very process counts as stuck")
	}
}

func TestStuck_NotWithoutProcessesOrWithLivingOnes(t *testing.T) {
	t.Parallel()
	var s stuckProcesses
	if s.all(nil) || s.all([]int{os.Getpid()}) || len(s.since) != 0 {
		t.Errorf("remembered: %v", s.since)
	}
}
