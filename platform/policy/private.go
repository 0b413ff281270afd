package policy

import "slices"

// Temporary is a directory of temporary files, such as /tmp. What lies there
// outside is not seen inside, except what has a rule of its own: that is mounted
// back into the directory.
type Temporary struct {
	// Path is the real path of the directory.
	Path string `json:"path"`
	// Source is the directory of the project's own that replaces it. It is empty
	// until a session starts.
	Source string `json:"source,omitempty"`
	Origin Origin `json:"origin"`
}

// Replaced is a file or a directory that has something else in its place inside.
// What the rules grant at Source holds for it.
type Replaced struct {
	// Path is a real path.
	Path string `json:"path"`
	// Source is what is there inside.
	Source string `json:"source"`
}

// inside is where a path leads inside.
func (p *Policy) inside(path string) string {
	for _, r := range p.Replaced {
		if Contains(r.Path, path) {
			return r.Source + path[len(r.Path):]
		}
	}
	return path
}

// Hidden is a path that the session does not see. If it is a directory, neither
// is anything below it, except what has a rule of its own.
type Hidden struct {
	// Path is a real path.
	Path   string `json:"path"`
	Origin Origin `json:"origin"`
}

// TemporaryAt returns the directory of the project's own that a path leads to
// inside, if it is not mounted back. The path must be absolute and clean.
func (p *Policy) TemporaryAt(path string) (Temporary, bool) {
	for _, temporary := range p.Temporary {
		if Contains(temporary.Path, path) {
			return temporary, !p.mountedBack(temporary.Path, path)
		}
	}
	return Temporary{}, false
}

// HiddenAt returns the entry that hides a path, if any. What lies in a directory
// of the project's own is not what the entry is about. The path must be absolute
// and clean.
func (p *Policy) HiddenAt(path string) (Hidden, bool) {
	for _, hidden := range p.Hidden {
		if !Contains(hidden.Path, path) || p.ruledBelow(hidden.Path, path) {
			continue
		}
		if _, own := p.TemporaryAt(hidden.Path); !own {
			return hidden, true
		}
	}
	return Hidden{}, false
}

// Outside returns what the rules grant for what is at a path outside: nothing if
// the session sees something else there. The path must be absolute and clean.
func (p *Policy) Outside(path string) Access {
	if _, own := p.TemporaryAt(path); own || p.inside(path) != path {
		return 0
	}
	return p.At(path)
}

// Given returns what one rule of the policy gives at a path, which must be
// absolute and clean. The rule for a directory of temporary files lets nobody
// write what is mounted back into it: the mount is read-only.
func (p *Policy) Given(rule Rule, path string) Access {
	switch {
	case !Contains(rule.Path, path):
		return 0
	case p.mountedBack(rule.Path, path):
		return rule.Access &^ Write
	}
	return rule.Access
}

// mountedBack reports whether dir is one of Temporary, and path is mounted back
// into it.
func (p *Policy) mountedBack(dir, path string) bool {
	return slices.ContainsFunc(p.Temporary, func(t Temporary) bool { return t.Path == dir }) && p.ruledBelow(dir, path)
}

// ruledBelow reports whether a path below dir has a rule or is below one that
// dir contains. Allowed sockets count, too.
func (p *Policy) ruledBelow(dir, path string) bool {
	below := func(granted string) bool {
		return granted != dir && Contains(dir, granted) && Contains(granted, path)
	}
	return slices.ContainsFunc(p.Rules, func(r Rule) bool { return below(r.Path) }) ||
		slices.ContainsFunc(p.UnixSockets, func(s UnixSocket) bool { return s.Path != "" && below(s.Path) })
}
