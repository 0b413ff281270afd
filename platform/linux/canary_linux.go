package linux

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// tryCanary lists the canary's directory as any program would. access(2) would
// not do: Landlock does not mediate it.
func tryCanary(c *Canary) error {
	fd, err := unix.Open(c.Path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	return unix.Close(fd)
}

// proveBefore makes sure that the canary sings: a directory that cannot be
// listed anyway would prove nothing.
func proveBefore(c *Canary) error {
	if err := tryCanary(c); err != nil {
		return fmt.Errorf("list %s before confining, as everybody may: %w", c.Path, err)
	}
	return nil
}

// proveAfter makes sure that it has stopped.
func proveAfter(c *Canary) error {
	err := tryCanary(c)
	switch {
	case err == nil:
		return fmt.Errorf("%s can still be listed although the kernel took the ruleset: the sandbox has no effect", c.Path)
	case !errors.Is(err, unix.EACCES):
		return fmt.Errorf("list %s after confining: expected a refusal: %w", c.Path, err)
	}
	return nil
}
