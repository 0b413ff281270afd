package proc

import (
	"testing"
	"time"
)

// A process is stuck only after 700 ms in which the machine was not busy, or after
// 3.5 s on one that is never calm.
func TestStuck_CountsNoTimeOfABusyMachine(t *testing.T) {
	t.Parallel()
	start := time.Now()
	at := func(wall, stalled time.Duration) moment {
		return moment{start.Add(wall * time.Millisecond), (1000 + stalled) * time.Millisecond}
	}
	for name, c := range map[string]struct {
		clock []moment
		want  []bool
	}{
		"calm":            {[]moment{at(0, 0), at(699, 0), at(700, 0)}, []bool{false, false, true}},
		"busy":            {[]moment{at(0, 0), at(700, 690), at(3499, 3400)}, []bool{false, false, false}},
		"busy all day":    {[]moment{at(0, 0), at(3499, 3499), at(3500, 3500)}, []bool{false, false, true}},
		"busy in part":    {[]moment{at(0, 0), at(900, 300), at(1000, 300)}, []bool{false, false, true}},
		"by three causes": {[]moment{at(0, 0), at(3000, 9000)}, []bool{false, false}},
	} {
		var s stuckProcesses
		for i, now := range c.clock {
			yes := func(int) bool { return true }
			if got := s.allAt([]int{7, 8}, yes, func() moment { return now }); got != c.want[i] {
				t.Errorf("%s, %d: %t", name, i, got)
			}
		}
	}
	var s stuckProcesses
	for i, stuck := range []bool{true, false, true, true} {
		now := at(time.Duration(i)*800, 0)
		got := s.allAt([]int{7}, func(int) bool { return stuck }, func() moment { return now })
		if want := i == 3; got != want { // it made progress at 800 ms
			t.Errorf("at %d: %t", i, got)
		}
	}
}
