package spawn

import (
	"errors"
	"fmt"

	"github.com/sandbox-sidecar/sandbox-sidecar/display"
)

// ErrUnavailable means that the policy cannot be enforced on this machine and
// does not allow to go without.
var ErrUnavailable = errors.New("sandbox unavailable")

// Error is a session that could not be started, in the parts a user needs.
type Error struct {
	// Attempt is what was tried: "change directory".
	Attempt string
	// Path is what it was tried on; empty where there is no one thing.
	Path string
	// Cause is why it failed. It wraps ErrUnavailable where the sandbox is the
	// reason.
	Cause error
	// Hint says what the user can do; empty where nothing.
	Hint string
}

// Error renders what was attempted, on what, and the cause.
func (e *Error) Error() string {
	if e.Path == "" {
		return fmt.Sprintf("%s: %v", e.Attempt, e.Cause)
	}
	return fmt.Sprintf("%s: %s: %v", e.Attempt, display.Quote(e.Path), e.Cause)
}

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.Cause }
