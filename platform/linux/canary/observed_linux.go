package canary

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// ObservedFile is a file that a process may write as its user, and that no
// policy grants: it has the name of the process. It is given by the path that
// the sidecar uses.
func ObservedFile(pid int) string { return fmt.Sprintf("/proc/%d/comm", pid) }

// ProveObserved makes a call that the observer must notice, and returns an error
// if no supervisor answers. Only the sidecar knows whether it was noticed; see
// platform.Proving.
func ProveObserved() error {
	// O_CREAT, because some filters observe nothing but creations.
	fd, err := unix.Open(ObservedFile(os.Getpid()), unix.O_WRONLY|unix.O_CREAT|unix.O_CLOEXEC, 0)
	switch {
	case err == nil:
		unix.Close(fd)
	case errors.Is(err, unix.ENOSYS):
		return fmt.Errorf("open a file for writing, observed: no supervisor answers: %w", err)
	}
	return nil
}
