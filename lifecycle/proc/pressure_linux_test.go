package proc

import (
	"testing"
	"time"
)

func TestSomeStalled(t *testing.T) {
	t.Parallel()
	for pressure, want := range map[string]time.Duration{
		"some avg10=0.07 avg60=1.52 avg300=2.08 total=324572679\n" +
			"full avg10=0.07 avg60=1.27 avg300=1.26 total=24493851\n": 324572679 * time.Microsecond,
		"full avg10=0.00 avg60=0.00 avg300=0.00 total=7\n": 0,
		"some avg10=0.00\n":         0,
		"some total=much\nsome\n\n": 0,
		"":                          0,
	} {
		if got := someStalled(pressure); got != want {
			t.Errorf("%q: %s", pressure, got)
		}
	}
}
