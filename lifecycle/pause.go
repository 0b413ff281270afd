package lifecycle

import "context"

// Pausable is a group whose processes can be made to stand still for a while,
// so that what a person is asked cannot be painted over, or answered, by them.
type Pausable interface {
	Group
	// Pause makes every process of the group stand still. One that is in a
	// system call that only its death interrupts does not come out of it. On an
	// error everybody goes on; else resume must be called. Kill needs no
	// resume.
	Pause(ctx context.Context) (resume func() error, err error)
}
