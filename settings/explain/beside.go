package explain

import (
	"path/filepath"
	"strings"

	"github.com/sandbox-sidecar/sandbox-sidecar/settings/compile"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/resolve"
)

// besideHint says where git makes a working tree without a setting. No setting
// is suggested, because it would open the directory of all projects.
const besideHint = `make it below the project, as with "git worktree add tree", or outside and open that`

// isBesideProject reports whether git wants to make a directory next to the
// project, as "git worktree add ../x" does. That is no file of git's own, as
// "git config --global" makes in the home directory.
func isBesideProject(s *compile.Snapshot, target, program string) bool {
	if program != "git" || s.ProjectDir == "" {
		return false
	}
	project := resolve.NewView(s.FS).Resolve(s.ProjectDir).Path
	return filepath.Dir(target) == filepath.Dir(project) && target != project && !isLock(target) &&
		!strings.HasPrefix(filepath.Base(target), ".")
}

// lockHint is the advice for a lock of git's. A grant of the file that it is for
// would not do: git makes the new content under the lock's name.
const lockHint = "git makes it to change the file beside it: if you trust the command, run it outside the sandbox"

// isLock reports whether a path is named as the locks of git are.
func isLock(path string) bool { return strings.HasSuffix(path, ".lock") }
