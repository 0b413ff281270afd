package review

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sandbox-sidecar/sandbox-sidecar/fsguard"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/protected"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/review/effects"
)

// Finding is one changed path, or several of a group.
type Finding struct {
	// Path is absolute. Of a group it is the one that is nearest to the project.
	Path string
	// How is what happened to it; Changed, if it differs within a group.
	How Change
	// Why says which program acts upon it.
	Why string
	// Group says what Path and Others are, such as "build files"; "" if there is
	// one path.
	Group string
	// Others are more paths of the group, the nearest first. Total counts them
	// all, Path and those that are not listed included.
	Others []string
	Total  int
}

// Change is what happened to a path.
type Change string

const (
	// Created: it did not exist before.
	Created Change = "created"
	// Changed: its content or mode may have changed.
	Changed Change = "changed"
	// Removed: it no longer exists.
	Removed Change = "removed"
	// Stored: it is the same in the working tree, but a commit or an index of git
	// holds another content.
	Stored Change = "stored in git"
)

// State is the state of the files when a session started.
type State struct {
	*names
	since  time.Time
	before map[string]string
	unread []string // not scanned, because the file system does not answer
	// gitDirs are those of policy.Policy.GitDirs, and directories that were a
	// repository and lie in no other.
	gitDirs []string
	// repository: the project had a repository of its own.
	repository bool
	// unlinked are directories that git's index names as repositories, and that
	// were none.
	unlinked []string
	// memory is the file of what searches have met; "" for none. last is what it
	// held when the session ended, and device that of the directory. viewTable is
	// the table of this search; see view.
	memory, viewTable string
	last              seen
	device            uint64
	crowded           []string // directories with more files than are scanned
	refs              *effects.State

	roots  []*State          // of the other directories with names that count
	tops   []string          // the project and the roots
	acting map[string]reason // grants that programs act on as a whole
	index  *policy.Index
	// linked are what symlinks led to when the session started.
	linked map[string]reason
	taken  bool // linked is known
	// busy are the directories that programs outside change, too.
	busy []string
	// open are the paths that a grant names below protected ones.
	open map[string]bool
	// prevented: see Prevented.
	prevented bool
	// unwritten: see Unwritten.
	unwritten bool
	gone      time.Time // see Gone; zero if it was not called

	mu         sync.Mutex // guards configured
	configured map[string]*configured
}

// reason is why a path is reviewed.
type reason struct {
	why   string
	group protected.Group
}

// whyProtected is the reason of a protected path that is not in the table.
const whyProtected = "it is protected: programs outside the sandbox act upon it without asking"

// fileTimeLag is how far a new file's time can lie behind the clock. The kernel
// uses the time of its last tick (current_time() in fs/inode.c), which is 10 ms
// ago at most (CONFIG_HZ=100).
const fileTimeLag = 10 * time.Millisecond

// Take records the state of the policy's protected paths, and of the project's
// files that programs act upon.
func Take(p *policy.Policy) *State {
	index := policy.NewIndex(p)
	roots, left, acting := rootsOf(p, guardedOf(p, index))
	s := &State{names: kept(p.Project, left, programsOf(p, index)), roots: roots, acting: acting}
	for _, one := range p.Protected {
		if one.Busy {
			s.busy = append(s.busy, one.Path)
		}
	}
	since := time.Now().Add(-fileTimeLag)
	open := opened(p)
	var tops []string
	for _, one := range s.all() {
		if one.project != "" {
			tops = append(tops, one.project)
		}
	}
	for _, one := range s.all() {
		one.open = open
		one.take(since, index, tops)
	}
	var repositories []string
	s.refs, repositories = takeRefs(p, tops, since)
	for _, dir := range slices.Compact(slices.Sorted(slices.Values(slices.Concat(p.GitDirs, repositories)))) {
		of := s.at(dir)
		of.gitDirs = append(of.gitDirs, dir)
	}
	for _, dir := range p.Unlinked {
		if _, err := fsguard.Lstat(filepath.Join(dir, ".git")); err != nil && !errors.Is(err, fsguard.ErrNoAnswer) {
			of := s.at(dir)
			of.unlinked = append(of.unlinked, dir)
		}
	}
	return s
}

// all are the state itself and those of the roots.
func (s *State) all() []*State { return append([]*State{s}, s.roots...) }

// at is the state of the innermost directory that holds a path; s itself if there
// is none.
func (s *State) at(path string) *State {
	of, length := s, 0
	for _, one := range s.all() {
		if one.project != "" && policy.Contains(one.project, path) && len(one.project) > length {
			of, length = one, len(one.project)
		}
	}
	return of
}

func (s *State) take(since time.Time, index *policy.Index, tops []string) {
	s.since, s.index, s.tops, s.linked = since, index, tops, map[string]reason{}
	_, err := fsguard.Lstat(filepath.Join(s.project, ".git"))
	s.repository = err == nil
	s.before, s.unread = s.scan()
	s.taken = true
	s.scanLinked(s.before)
}

// Prevented says that the session could change nothing in protected directories
// that were there. What has changed in busy ones is the work of others.
func (s *State) Prevented() { s.prevented = true }

// Gone says, before Findings, that from now on no process of the session is left.
// Then what others make during the search is newer than what the session has left,
// and Findings need not wait for the clock that files get their times from.
func (s *State) Gone() {
	now := time.Now()
	for _, one := range s.all() {
		one.gone = now
	}
}

// Unwritten says that the session has changed no file. Then Findings does not
// search subdirectories, which takes longest.
func (s *State) Unwritten() {
	s.unwritten = true
	s.refs.Unwritten()
}

// Findings returns what has changed since Take: single paths, sorted, and then
// the groups.
func (s *State) Findings() []Finding {
	list := changes{}
	if !s.unwritten {
		s.recall()
	}
	s.compare(s, list, time.Now().Add(maxSearchTime))
	roots := shares{left: maxSearchTime, of: len(s.roots)}
	for _, one := range s.roots {
		begun := time.Now()
		one.compare(s, list, begun.Add(roots.next()))
		roots.spend(time.Since(begun))
	}
	s.forget()
	list.foldRepositories()
	return append(list.findings(), s.stored()...)
}

// compare adds to the list what has changed since take. of has the accepted
// changes of git's configuration.
func (s *State) compare(of *State, list changes, end time.Time) {
	after, unread := s.scan()
	s.scanLinked(after)
	unread = append(unread, s.unread...)
	unread = append(unread, s.crowded...)
	add := func(path string, how Change) {
		holds := func(dir string) bool { return policy.Contains(dir, path) }
		if slices.ContainsFunc(unread, holds) ||
			of.prevented && slices.ContainsFunc(of.busy, holds) && s.index.Protects(path) {
			return // it could not be compared, or others changed it
		}
		list.add(strings.TrimSuffix(path, scripts), how, of.explain(path, after[path], s.reason(path)))
	}
	for path, signature := range after {
		switch before, was := s.before[path]; {
		case !was:
			add(path, Created)
		case before != signature:
			add(path, Changed)
		}
	}
	for path := range s.before {
		if _, is := after[path]; !is {
			add(path, Removed)
		}
	}
	if !of.unwritten {
		s.search(list, of.all(), end)
	}
}

// reason returns the reason of the path, or of the directory that contains it.
func (s *State) reason(path string) reason {
	for ; path != "/" && path != "."; path = filepath.Dir(path) {
		if reason, ok := s.reasons[path]; ok {
			return reason
		}
		if reason, ok := s.linked[path]; ok {
			return reason
		}
		if reason, ok := s.acting[path]; ok {
			return reason
		}
		in := filepath.Dir(path) + "/"
		for pattern, reason := range s.reasons {
			name, ok := strings.CutPrefix(pattern, in)
			if ok && strings.Contains(name, "*") && policy.MatchName(name, filepath.Base(path)) {
				return reason
			}
		}
	}
	return reason{why: whyProtected}
}
