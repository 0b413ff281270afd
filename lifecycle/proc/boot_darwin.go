package proc

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// bootID is another after each start of the machine.
func BootID() (string, error) {
	id, err := unix.Sysctl("kern.bootsessionuuid")
	if err == nil && id == "" {
		err = errors.New("it is empty")
	}
	if err != nil {
		return "", fmt.Errorf("ask for this start of the machine: %w", err)
	}
	return id, nil
}

// autogroupID is empty: this system does not tell from which setsid(2) a
// process descends.
func AutogroupID(int) string { return "" }
