package canary

import (
	"errors"
	"fmt"
)

// expect compares the answer to an attempt with the one that only a supervisor
// gives.
func expect(attempt string, got, want error) error {
	switch {
	case errors.Is(got, want):
		return nil
	case got == nil:
		return fmt.Errorf("%s: it succeeded, so no supervisor answers", attempt)
	}
	return fmt.Errorf("%s: no supervisor answers: want %w: got %w", attempt, want, got)
}
