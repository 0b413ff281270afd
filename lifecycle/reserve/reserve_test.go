//go:build unix

package reserve

import (
	"errors"
	"testing"
)

func TestLeaveAndKeep_StartOnceAndReturnTheError(t *testing.T) {
	t.Parallel()
	failed := errors.New("failed")
	for name, call := range map[string]func(func() error) error{"leave": Leave, "keep": Keep} {
		started := 0
		err := call(func() error {
			started++
			return failed
		})
		if started != 1 || !errors.Is(err, failed) {
			t.Errorf("%s: started %d times, error is %v", name, started, err)
		}
	}
}
