package compile

import (
	"errors"
	"io/fs"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/git"
)

// pointersIn are the .git files of a repository's working trees that lie elsewhere,
// as far as the grants let sessions write them. One that is missing is left to git,
// which makes the tree again. One that cannot be looked up is not.
func pointersIn(view fsView, repository git.Repository, granted cover) (list []string) {
	for _, path := range repository.Pointers {
		if !granted.at(path).Has(policy.Write) {
			continue
		}
		entry := view.Entry(path)
		missing := errors.Is(entry.Err, fs.ErrNotExist)
		if !missing && (entry.Err != nil || !entry.Mode.IsDir()) {
			list = append(list, path)
		}
	}
	return list
}
