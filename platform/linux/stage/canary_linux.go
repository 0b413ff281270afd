package stage

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// tryCanary opens the canary's directory for listing. access(2) would prove
// nothing, because Landlock does not govern it.
func tryCanary(c *Canary) error {
	fd, err := unix.Open(c.Path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	return unix.Close(fd)
}

// proveBefore returns an error unless the canary's directory can be listed. If
// it cannot be listed anyway, proveAfter would prove nothing.
func proveBefore(c *Canary) error {
	if err := tryCanary(c); err != nil {
		return fmt.Errorf("list %s before confining: %w", c.Path, err)
	}
	return nil
}

// proveAfter returns an error unless Landlock refuses to list the directory.
func proveAfter(c *Canary) error {
	err := tryCanary(c)
	switch {
	case err == nil:
		return fmt.Errorf("%s can be listed although the kernel accepted the ruleset: the sandbox has no effect",
			c.Path)
	case !errors.Is(err, unix.EACCES):
		return fmt.Errorf("list %s after confining: expected a refusal: %w", c.Path, err)
	}
	return nil
}
