package managed

import (
	"os/user"
	"path/filepath"
)

// homeHere is the home directory that the system's database has for a user; "" if
// it has none.
func homeHere(id string) (string, error) {
	found, err := user.LookupId(id)
	if err != nil || !filepath.IsAbs(found.HomeDir) {
		return "", nil
	}
	return found.HomeDir, nil
}
