package review

import (
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
	since   time.Time
	before  map[string]string
	unread  []string // not scanned, because the file system does not answer
	gitDirs []string // see policy.Policy.GitDirs
	// repository: the project had a repository of its own.
	repository bool
	crowded    []string // directories with more files than are scanned
	refs       *effects.State
	// repositories are the directories that were one, and lie in no other.
	repositories []string

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
	s := &State{names: namesOf(p), gitDirs: p.GitDirs, since: time.Now().Add(-fileTimeLag)}
	_, err := fsguard.Lstat(filepath.Join(p.Project, ".git"))
	s.repository = err == nil
	s.before, s.unread = s.scan()
	s.refs = s.takeRefs(p, rootsOf(p))
	return s
}

// Findings returns what has changed since Take: single paths, sorted, and then
// the groups.
func (s *State) Findings() []Finding {
	after, unread := s.scan()
	unread = append(unread, s.unread...)
	unread = append(unread, s.crowded...)
	list := changes{}
	add := func(path string, how Change) {
		if slices.ContainsFunc(unread, func(dir string) bool { return policy.Contains(dir, path) }) {
			return // it could not be compared
		}
		list.add(strings.TrimSuffix(path, scripts), how, s.explained(path, after[path]))
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
	s.search(list)
	list.foldRepositories()
	return append(list.findings(), s.stored()...)
}

// reason returns the reason of the path, or of the directory that contains it.
func (s *State) reason(path string) reason {
	for ; path != "/" && path != "."; path = filepath.Dir(path) {
		if reason, ok := s.reasons[path]; ok {
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
