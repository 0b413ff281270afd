package linux

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/linux/audit"
)

// A log that is off is opened again a second later; any other error is final.
func TestUntilOpen_TriesAgainWhileAuditIsOff(t *testing.T) {
	t.Parallel()
	log, never := &audit.Log{}, errors.New("no right to read it")
	off := fmt.Errorf("ask: %w", audit.ErrOff)
	type answer struct {
		log *audit.Log
		err error
	}
	for name, answers := range map[string][]answer{
		"switched on later": {{nil, off}, {nil, off}, {log, nil}},
		"never to be read":  {{nil, off}, {nil, never}},
		"there at once":     {{log, nil}},
	} {
		synctest.Test(t, func(t *testing.T) {
			asked := 0
			open := untilOpen(func() (*audit.Log, error) {
				asked++
				now := answers[min(asked, len(answers))-1]
				return now.log, now.err
			})
			for i := range len(answers) + 3 {
				want := answers[min(i, len(answers)-1)]
				for range 2 { // the second is not asked for
					if got, err := open(); got != want.log || !errors.Is(err, want.err) {
						t.Errorf("%s, time %d: %v, %v", name, i, got, err)
					}
				}
				time.Sleep(offFor)
			}
			if asked != len(answers) {
				t.Errorf("%s: opened %d times", name, asked)
			}
		})
	}
}
