package notify

import (
	"errors"
	"fmt"
)

// Expect compares the answer to an attempt with the one that only a supervisor
// gives.
func Expect(attempt string, got, want error) error {
	switch {
	case errors.Is(got, want):
		return nil
	case got == nil:
		return fmt.Errorf("%s: it succeeded, and nobody can be supervising", attempt)
	}
	return fmt.Errorf("%s: nobody supervises: want %w: got %w", attempt, want, got)
}
