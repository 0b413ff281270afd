//go:build !linux && !darwin

package fsguard

import (
	"errors"
	"os"
)

// openForReading cannot refuse symlinks on this system.
func openForReading(string) (*os.File, error) { return nil, errors.ErrUnsupported }
