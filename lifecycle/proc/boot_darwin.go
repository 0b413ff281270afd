package proc

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// BootID differs after each start of the machine.
func BootID() (string, error) {
	id, err := unix.Sysctl("kern.bootsessionuuid")
	if err == nil && id == "" {
		err = errors.New("it is empty")
	}
	if err != nil {
		return "", fmt.Errorf("find boot id: %w", err)
	}
	return id, nil
}

// AutogroupID is empty: macOS does not report from which setsid(2) call a
// process descends.
func AutogroupID(int) string { return "" }
