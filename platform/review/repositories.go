package review

import (
	"io/fs"
	"path/filepath"
	"time"

	"github.com/sandbox-sidecar/sandbox-sidecar/fsguard"
)

// The bounds of the search for repositories. It runs when a session ends, and
// goes to any depth.
const (
	maxWalkTime = 200 * time.Millisecond
	maxWalked   = 50_000
	maxEntries  = 10_000 // of each directory
	maxHooks    = 64     // of each repository
)

const (
	whyRepository = "it is a git repository: git runs programs that its hooks and configuration name"
	whyUnsearched = "it holds too many directories, or unreadable ones: new git repositories there are not listed"
	whyUncompared = "it holds too many files: changes of some of them are not listed"
)

// newRepositories lists the repositories in the project that were created or
// reconfigured since, nearest first. It leaves out node_modules, which can hold
// tens of thousands of directories. complete is false if a bound was hit.
func (s *State) newRepositories() (dirs []string, complete bool) {
	if s.project == "" {
		return nil, true
	}
	end := time.Now().Add(maxWalkTime)
	queue, missed := []string{s.project}, false
	for walked := 0; len(queue) > 0; walked++ {
		if walked >= maxWalked || time.Now().After(end) {
			return dirs, false
		}
		dir := queue[0]
		queue = queue[1:]
		entries, err := fsguard.ReadDir(dir, maxEntries)
		if err != nil {
			// git needs not read a directory to run what its repository names, so
			// a session could hide one by the directory's mode.
			info, err := fsguard.Lstat(dir)
			missed = missed || err == nil && s.isNew(info)
			continue
		}
		missed = missed || len(entries) == maxEntries
		bare := 0
		for _, entry := range entries {
			path := filepath.Join(dir, entry.Name)
			switch entry.Name {
			case ".git":
				if (dir != s.project || !s.repository) && s.reconfigured(path) {
					dirs = append(dirs, path)
				}
				continue
			case "HEAD", "objects", "refs", "config":
				bare++
			case "node_modules":
				continue
			}
			if entry.Type.IsDir() {
				queue = append(queue, path)
			}
		}
		// git takes a directory with these for a repository, whatever its name.
		if bare == 4 && s.reconfigured(dir) {
			dirs = append(dirs, dir)
		}
	}
	return dirs, !missed
}

// reconfigured reports whether a repository, or a file that names one, has
// changed in what git runs.
func (s *State) reconfigured(path string) bool {
	info, err := fsguard.Lstat(path)
	if err != nil {
		return false
	}
	if !info.IsDir() {
		return s.isNew(info) // a file, or a symlink
	}
	hooks := filepath.Join(path, "hooks")
	files := []string{
		filepath.Join(path, "config"), filepath.Join(path, "config.worktree"), filepath.Join(path, "commondir"), hooks,
	}
	entries, _ := fsguard.ReadDir(hooks, maxHooks)
	for _, entry := range entries {
		files = append(files, filepath.Join(hooks, entry.Name))
	}
	for _, file := range files {
		if info, err := fsguard.Lstat(file); err == nil && s.isNew(info) {
			return true
		}
	}
	return false
}

// isNew goes by the time of the inode's last change, which no program can set.
func (s *State) isNew(info fs.FileInfo) bool { return changedAt(info).After(s.since) }
