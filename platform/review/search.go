package review

import (
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/sandbox-sidecar/sandbox-sidecar/fsguard"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/protected"
)

// The bounds of the search. It runs when a session ends, and goes to any depth.
const (
	maxSearched = 50_000 // directories
	maxEntries  = 10_000 // of each directory
	maxHooks    = 64     // of each repository
	maxHits     = 10_000
)

// maxSearchTime bounds the search too. Tests have more.
var maxSearchTime = 200 * time.Millisecond

const (
	whyRepository = "it is a git repository: git runs programs that its hooks and configuration name"
	whyUnsearched = "it holds too many directories, or unreadable ones: not all changes in them are listed"
	whyUncompared = "it holds too many files: changes of some of them are not listed"
)

// search finds, by the time of the last change, the repositories and the names
// of the table in all subdirectories of the project. It leaves out what is in
// node_modules, which can hold tens of thousands of directories.
type search struct {
	*State
	list     changes
	end      time.Time
	searched int
	missed   bool     // a bound was hit, or a new directory could not be read
	silent   bool     // a file system did not answer
	kin      []*State // all of the session
	met      []uint64 // see came
}

// search adds to the list what it finds until a time. kin are all states of the
// session.
func (s *State) search(list changes, kin []*State, end time.Time) {
	begun := s.gone
	if begun.IsZero() {
		begun = time.Now()
	}
	w := search{State: s, list: list, end: end, kin: kin}
	for _, path := range s.crowded {
		w.uncompared(path)
	}
	w.gitFiles()
	for _, dir := range w.unlinked {
		dot := filepath.Join(dir, ".git")
		if _, err := fsguard.Lstat(dot); err == nil {
			w.list.add(dot, Created, reason{why: whyRepository})
		}
	}
	if s.project == "" || !s.index.Writable(s.project) {
		return // what sessions may write in it are roots
	}
	w.operations(filepath.Join(s.project, ".git"))
	queue := []string{s.project}
	for len(queue) > 0 && !w.over() {
		dir := queue[0]
		queue = append(queue[1:], w.directory(dir)...)
	}
	w.keep(begun)
	if w.missed {
		list.add(s.project, Changed, reason{why: whyUnsearched})
	}
}

// over reports whether a bound is hit.
func (w *search) over() bool {
	if w.searched >= maxSearched || len(w.list) >= maxHits || time.Now().After(w.end) {
		w.missed = true
		return true
	}
	return false
}

// directory searches one, and returns its subdirectories.
func (w *search) directory(dir string) (deeper []string) {
	names := w.everywhere
	if dir == w.project {
		names = w.installed // all others are compared
	}
	entries := w.entries(dir)
	bare := 0
	for _, entry := range entries {
		path := filepath.Join(dir, entry.Name)
		for _, name := range names.of(entry.Name) {
			w.name(path, strings.Split(name.Path, "/")[1:], name, false)
		}
		if entry.Type&fs.ModeSymlink != 0 && entry.Name != ".git" {
			w.link(path)
		}
		switch entry.Name {
		case ".git":
			if (dir != w.project || !w.repository) && w.reconfigured(path) {
				w.list.add(path, Created, reason{why: whyRepository})
			}
			continue
		case "HEAD", "objects", "refs", "config":
			bare++
		case "node_modules":
			continue
		}
		if entry.Type.IsDir() && !w.skips(path) {
			deeper = append(deeper, path)
		}
	}
	// git takes a directory with these for a repository, whatever its name.
	if bare == 4 && w.reconfigured(dir) {
		w.list.add(dir, Created, reason{why: whyRepository})
	}
	return deeper
}

// entries lists a directory.
func (w *search) entries(dir string) []fsguard.Entry {
	w.searched++
	entries, err := fsguard.ReadDir(dir, maxEntries)
	if err != nil {
		// A program needs not list a directory to open what it knows by name, so a
		// session could hide something by the directory's mode.
		w.silent = w.silent || errors.Is(err, fsguard.ErrNoAnswer)
		info, err := fsguard.Lstat(dir)
		w.missed = w.missed || err == nil && w.isNew(info)
	}
	w.missed = w.missed || len(entries) == maxEntries
	return entries
}

// name adds the path to the list if it is a name of the table and has changed.
// rest are the components that follow in the name. A directory that was moved
// there has changed, and what is in it has not; fresh says that one has.
func (w *search) name(path string, rest []string, name protected.Name, fresh bool) {
	info, err := fsguard.Lstat(path)
	if err != nil {
		return
	}
	fresh = fresh || w.isNew(info)
	switch {
	case len(rest) == 0:
		if w.came(info, "", name.Why != whyProtected) {
			w.list.add(path, Changed, reason{name.Why + whyCame, name.Group})
		} else if fresh || info.IsDir() && w.changedIn(path, maxDepth) {
			w.list.add(path, Changed, reason{name.Why, name.Group})
		}
	case strings.Contains(rest[0], "*"):
		for _, entry := range w.entries(path) {
			if policy.MatchName(rest[0], entry.Name) {
				w.name(filepath.Join(path, entry.Name), rest[1:], name, fresh)
			}
		}
	default:
		w.name(filepath.Join(path, rest[0]), rest[1:], name, fresh)
	}
}

// changedIn reports whether something in a directory has changed.
func (w *search) changedIn(dir string, depth int) bool {
	if w.over() {
		return false
	}
	for _, entry := range w.entries(dir) {
		path := filepath.Join(dir, entry.Name)
		info, err := fsguard.Lstat(path)
		if err == nil && !w.open[path] && (w.isNew(info) || info.IsDir() && depth > 1 && w.changedIn(path, depth-1)) {
			return true
		}
	}
	return false
}

// uncompared adds a path with too many files to compare if one of them is new,
// or if there are too many to see that.
func (w *search) uncompared(path string) {
	info, err := fsguard.Lstat(path)
	if err != nil { // a pattern
		w.list.add(path, Changed, reason{why: whyUncompared})
		return
	}
	entries, err := fsguard.ReadDir(path, maxEntries)
	if err != nil || len(entries) == maxEntries {
		w.list.add(path, Changed, reason{why: whyUncompared})
	} else if w.isNew(info) || w.changedIn(path, maxDepth) {
		w.list.add(path, Changed, w.reason(path))
	}
}

// repositoryFiles are what git runs commands from in a repository, beside its
// hooks.
var repositoryFiles = append([]string{"config", "config.worktree", "commondir", "hooks"}, operationFiles...)

// operationFiles are the lists of commands of an operation that is not finished.
var operationFiles = []string{"rebase-merge/git-rebase-todo", "sequencer/todo"}

// reconfigured reports whether a repository, or a file that names one, has
// changed in what git runs, or was not there before.
func (w *search) reconfigured(path string) bool {
	info, err := fsguard.Lstat(path)
	if err != nil {
		return false
	}
	if !info.IsDir() {
		return w.came(info, "", true) || w.isNew(info) // a file, or a symlink
	}
	came := false
	for _, file := range []string{"HEAD", "config"} {
		if info, err := fsguard.Lstat(filepath.Join(path, file)); err == nil {
			came = w.came(info, "", true) || came
		}
	}
	if came {
		return true
	}
	files := slices.Clone(repositoryFiles)
	entries, _ := fsguard.ReadDir(filepath.Join(path, "hooks"), maxHooks)
	for _, entry := range entries {
		files = append(files, "hooks/"+entry.Name)
	}
	return slices.ContainsFunc(files, func(file string) bool { return w.newFile(filepath.Join(path, file)) })
}

func (w *search) newFile(path string) bool {
	info, err := fsguard.Lstat(path)
	return err == nil && w.isNew(info)
}

// operations looks for forged lists of commands in the project's worktrees and
// submodules, whose repositories the search does not enter. dot is its .git.
func (w *search) operations(dot string) {
	if read, err := fsguard.ReadFile(dot, maxPointer); err == nil && read.Data != nil {
		target, ok := strings.CutPrefix(strings.TrimSpace(string(read.Data)), "gitdir: ")
		if !ok {
			return
		}
		if dot = target; !filepath.IsAbs(dot) {
			dot = filepath.Join(w.project, dot)
		}
		w.operationsOf(dot)
	}
	for _, entry := range w.entries(filepath.Join(dot, "worktrees")) {
		w.operationsOf(filepath.Join(dot, "worktrees", entry.Name))
	}
	w.operationsIn(filepath.Join(dot, "modules"), maxModuleDepth)
}

const (
	maxPointer     = 4096
	maxModuleDepth = 6
)

// operationsIn does the same for submodules, which may lie in nested
// directories.
func (w *search) operationsIn(dir string, depth int) {
	for _, entry := range w.entries(dir) {
		module := filepath.Join(dir, entry.Name)
		if !entry.Type.IsDir() || w.over() {
			continue
		}
		if _, err := fsguard.Lstat(filepath.Join(module, "HEAD")); err == nil {
			w.operationsOf(module)
			module = filepath.Join(module, "modules")
		}
		if depth > 1 {
			w.operationsIn(module, depth-1)
		}
	}
}

func (w *search) operationsOf(repository string) {
	for _, name := range operationFiles {
		if path := filepath.Join(repository, name); w.newFile(path) {
			why := reason{"git runs its commands when the operation continues", protected.Unfinished}
			w.list.add(path, Changed, why)
		}
	}
}

// isNew goes by the time of the inode's last change, which no program can set.
func (s *State) isNew(info fs.FileInfo) bool { return changedAt(info).After(s.since) }
