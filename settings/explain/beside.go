package explain

import (
	"path/filepath"

	"github.com/sandbox-sidecar/sandbox-sidecar/settings/compile"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/resolve"
)

// besideHint says where git makes a working tree without a setting. No setting
// is suggested, because it would open the directory of all projects.
const besideHint = `make it below the project, as with "git worktree add tree", or outside the sandbox, and open it`

// isBesideProject reports whether git wants to make a directory next to the
// project, as "git worktree add ../x" does.
func isBesideProject(s *compile.Snapshot, target, program string) bool {
	if program != "git" || s.ProjectDir == "" {
		return false
	}
	project := resolve.NewView(s.FS).Resolve(s.ProjectDir).Path
	return filepath.Dir(target) == filepath.Dir(project) && target != project
}
