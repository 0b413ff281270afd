package lifecycle

import "context"

// Pausable is a group whose processes can be stopped for a while, so that they
// can neither overwrite a question to the user nor answer it.
type Pausable interface {
	Group
	// Pause stops every process of the group. One that is in a system call
	// which only its death interrupts stays in it. On an error all processes
	// continue; otherwise resume must be called. Kill needs no resume.
	Pause(ctx context.Context) (resume func() error, err error)
}
