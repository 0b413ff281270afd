package lifecycle

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/sandbox-sidecar/sandbox-sidecar/lifecycle/libsystem"
)

// carriesFingerprint asks the kernel about each mark. One mark is enough. If
// none is found and some cannot be read, the error wraps ErrUnknown.
func carriesFingerprint(f SessionFingerprint, pid int) (bool, error) {
	var unknown error
	for _, mark := range f.Marks() {
		carried, err := mark.CarriedBy(func(medium Medium, argument string) Answer {
			filter := libsystem.FilterGlobalName
			if medium == ByPath {
				filter = libsystem.FilterPath
			}
			answer, err := libsystem.Check(pid, string(medium), filter, argument)
			switch {
			case err != nil:
				unknown = fmt.Errorf("%w: %w", ErrUnknown, err)
				return Unknown
			case answer == 0:
				return Yes
			}
			return No
		})
		if carried {
			return true, nil
		}
		if err == nil {
			unknown = nil // this mark says no, whatever the unreadable ones would
			break
		}
	}
	return false, unknown
}

// identify identifies a process and its parent.
func identify(pid int) (processIdentity, error) {
	identity, err := libsystem.IdentityOf(pid)
	return processIdentity{self: identity.UniqueID, parent: identity.ParentUniqueID}, err
}

// makeMark makes the allowed side of the mark by path; the denied side is never
// made. It is removed with its directory.
func makeMark(f SessionFingerprint) error {
	if f.Dir == "" {
		return nil
	}
	if err := os.Mkdir(filepath.Join(f.Dir, "allow"), 0o700); err != nil {
		return fmt.Errorf("make fingerprint: %w", err)
	}
	return nil
}
