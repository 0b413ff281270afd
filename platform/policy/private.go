package policy

import "path/filepath"

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
	// Needed is true if sessions must not see what else is there.
	Needed bool `json:"needed,omitempty"`
}

// Copy is a file that has a part of itself in its place inside, where there are
// namespaces. Without them the session cannot read it.
type Copy struct {
	// Path is a real path.
	Path string `json:"path"`
	// Text is all that the session reads there.
	Text   string `json:"text"`
	Origin Origin `json:"origin"`
}

// CopyAt returns the copy at a path, if there is one.
func (p *Policy) CopyAt(path string) (Copy, bool) {
	for _, c := range p.Copies {
		if c.Path == path {
			return c, true
		}
	}
	return Copy{}, false
}

// Inside is where a path leads inside, as far as something else is in its place.
// The path must be absolute and clean.
func (p *Policy) Inside(path string) string {
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
	if at := p.temporaryAt(path); at >= 0 {
		return p.Temporary[at], !p.ruledBelow(p.Temporary[at].Path, path)
	}
	return Temporary{}, false
}

// HiddenAt returns the entry that hides a path, if any. What lies in a directory
// of the project's own is not what the entry is about. The path must be absolute
// and clean.
func (p *Policy) HiddenAt(path string) (Hidden, bool) {
	if at := p.hiddenAt(path); at >= 0 {
		return p.Hidden[at], true
	}
	return Hidden{}, false
}

// Outside returns what the rules grant for what is at a path outside: nothing if
// the session sees something else there. The path must be absolute and clean.
func (p *Policy) Outside(path string) Access {
	if _, own := p.TemporaryAt(path); own || p.Inside(path) != path {
		return 0
	}
	return p.At(path)
}

// Given returns what one rule of the policy gives at a path, which must be
// absolute and clean. The rule for a directory of temporary files lets nobody
// write what is mounted back into it: the mount is read-only.
func (p *Policy) Given(rule Rule, path string) Access {
	if !Contains(rule.Path, path) {
		return 0
	}
	return p.given(&rule, path)
}

// Replaceable reports whether the session may write where a socket is, so that
// another program could be behind it. No filter is put before such an agent.
func (p *Policy) Replaceable(s UnixSocket) bool {
	return s.Path != "" && p.Outside(filepath.Dir(s.Path)).Has(Write)
}
