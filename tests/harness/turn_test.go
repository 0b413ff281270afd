package harness

import (
	"strconv"
	"testing"
)

// Each variant has its turn, one at a time, and all run where nothing is set.
func TestIsTurn(t *testing.T) {
	t.Parallel()
	const variants = 3
	runs := [variants]int{}
	for turn := range 10 * variants {
		for i := range variants {
			is, err := isTurn(strconv.Itoa(turn), i, variants)
			if err != nil {
				t.Fatal(err)
			}
			if is {
				runs[i]++
			}
			if all, err := isTurn("", i, variants); !all || err != nil {
				t.Errorf("%d does not run by itself: %v", i, err)
			}
		}
	}
	for i, n := range runs {
		if n != 10 {
			t.Errorf("%d has %d turns of %d", i, n, 10*variants)
		}
	}
	if _, err := isTurn("-1", 0, variants); err == nil {
		t.Error("-1 is a turn")
	}
}
