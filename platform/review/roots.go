package review

import (
	"path/filepath"
	"slices"
	"time"

	"github.com/sandbox-sidecar/sandbox-sidecar/fsguard"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
)

// rootsOf returns a state for each directory outside of the project in which
// names count as they do in the project. Protected paths below one are its own.
// What is left of guarded is the project's.
func rootsOf(p *policy.Policy, guarded []string) (roots []*State, left []string, acting map[string]reason) {
	byRoot := map[string][]string{}
	acting = map[string]reason{}
	for _, root := range p.Roots {
		if root.Acts != "" {
			acting[root.Path] = reason{why: root.Acts}
		}
		byRoot[root.Path] = nil
	}
	for _, path := range guarded {
		root := innermost(byRoot, path)
		// The project's own are those in it, but for what a root in it holds.
		if root == "" || p.Project != "" && policy.Contains(p.Project, path) && !policy.Contains(p.Project, root) {
			left = append(left, path)
		} else {
			byRoot[root] = append(byRoot[root], path)
		}
	}
	for _, root := range p.Roots {
		if info, err := fsguard.Lstat(root.Path); err == nil && info.IsDir() {
			roots = append(roots, &State{names: kept(root.Path, byRoot[root.Path], nil)})
		}
	}
	return roots, left, acting
}

// innermost is the root that a path is below; "" if there is none.
func innermost(roots map[string][]string, path string) string {
	for dir := range policy.Upwards(filepath.Dir(path)) {
		if _, is := roots[dir]; is {
			return dir
		}
	}
	return ""
}

// skips reports whether a directory is left to another root, or to the project,
// whose own search covers it.
func (s *State) skips(dir string) bool { return slices.Contains(s.tops, dir) }

// opened are the paths that a grant names below protected ones. What is there is
// not reviewed as a part of those: sessions write it all the time. A grant that
// programs act on is reviewed by itself.
func opened(p *policy.Policy) map[string]bool {
	open := map[string]bool{}
	for _, path := range p.Reopened {
		if slices.ContainsFunc(p.Rules, func(rule policy.Rule) bool { return rule.Path == path }) {
			open[path] = true
		}
	}
	return open
}

// shares divides a time, so that one large root does not use up that of all. What
// one does not need is left to the next ones.
type shares struct {
	left time.Duration
	of   int // how many are to come
}

// next is the share of the next one.
func (s *shares) next() time.Duration { return s.left / time.Duration(max(s.of, 1)) }

// spend takes away what one has used.
func (s *shares) spend(used time.Duration) { s.left, s.of = max(0, s.left-used), s.of-1 }
