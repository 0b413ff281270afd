package policy

import (
	"path/filepath"
	"strings"
)

// This file answers what a policy says at a path, above all for the observer's
// three readings of a call. One of them must not need Go's scheduler (see package
// notify). So InPlace, IsReplaced, IsHidden and what they call are nosplit and
// norace, allocate nothing, and call only each other.

// At returns the union of what the rules grant for a path, without Write if the
// path is protected, and nothing if it is hidden. The path must be absolute and
// clean; the caller resolves symlinks. At ignores Restricted.
func (p *Policy) At(path string) Access { return p.InPlace(p.Inside(path)) }

// InPlace is At for a path that is not Replaced. It may be called without Go's
// scheduler.
//
//go:nosplit
//go:norace
func (p *Policy) InPlace(path string) Access {
	if p.hiddenAt(path) >= 0 {
		return 0
	}
	var access Access
	for i := range p.Rules {
		if rule := &p.Rules[i]; rule.Access&^access != 0 && Contains(rule.Path, path) {
			access |= p.given(rule, path)
		}
	}
	if access&Write != 0 && p.protects(path) {
		access &^= Write
	}
	return access
}

// IsReplaced reports whether something else is at a path inside; see Replaced. It
// may be called without Go's scheduler.
//
//go:nosplit
//go:norace
func (p *Policy) IsReplaced(path string) bool {
	for i := range p.Replaced {
		if Contains(p.Replaced[i].Path, path) {
			return true
		}
	}
	return false
}

// IsHidden reports whether a path has an entry of HiddenAt. It may be called
// without Go's scheduler.
//
//go:nosplit
//go:norace
func (p *Policy) IsHidden(path string) bool { return p.hiddenAt(path) >= 0 }

// hiddenAt is the index of the entry that hides a path; -1 if there is none. What
// lies in a directory of the project's own is not what an entry is about.
//
//go:nosplit
//go:norace
func (p *Policy) hiddenAt(path string) int {
	for i := range p.Hidden {
		hidden := p.Hidden[i].Path
		if !Contains(hidden, path) || p.ruledBelow(hidden, path) {
			continue
		}
		if at := p.temporaryAt(hidden); at < 0 || p.ruledBelow(p.Temporary[at].Path, hidden) {
			return i
		}
	}
	return -1
}

// temporaryAt is the index of the directory of Temporary that contains a path; -1
// if there is none.
//
//go:nosplit
//go:norace
func (p *Policy) temporaryAt(path string) int {
	for i := range p.Temporary {
		if Contains(p.Temporary[i].Path, path) {
			return i
		}
	}
	return -1
}

// given is what a rule that contains a path gives there. What is mounted back into
// a directory of Temporary is read-only by the rule for that.
//
//go:nosplit
//go:norace
func (p *Policy) given(rule *Rule, path string) Access {
	for i := range p.Temporary {
		if p.Temporary[i].Path == rule.Path && p.ruledBelow(rule.Path, path) {
			return rule.Access &^ Write
		}
	}
	return rule.Access
}

// ruledBelow reports whether a path below dir has a rule or is below one that
// dir contains. Allowed sockets count, too.
//
//go:nosplit
//go:norace
func (p *Policy) ruledBelow(dir, path string) bool {
	if len(path) <= len(dir) {
		return false
	}
	for i := range p.Rules {
		if granted := p.Rules[i].Path; granted != dir && Contains(granted, path) && Contains(dir, granted) {
			return true
		}
	}
	for i := range p.UnixSockets {
		granted := p.UnixSockets[i].Path
		if granted != "" && granted != dir && Contains(granted, path) && Contains(dir, granted) {
			return true
		}
	}
	return false
}

// protects reports whether a path is protected; see ProtectedAt.
//
//go:nosplit
//go:norace
func (p *Policy) protects(path string) bool {
	for i := range p.Protected {
		one := &p.Protected[i]
		covered := one.coversHere(path) || one.coversAnywhere(path)
		if covered && !one.Creatable && !p.reopens(one, path) {
			return true
		}
	}
	return false
}

// reopens reports whether a path is left to the rules although an entry covers
// it; see Reopened.
//
//go:nosplit
//go:norace
func (p *Policy) reopens(one *Protected, path string) bool {
	for i := range p.Reopened {
		if open := p.Reopened[i]; Contains(open, path) && open != one.Path && Contains(one.Path, open) {
			return true
		}
	}
	return false
}

// covers is Covers.
func (p *Protected) covers(path string) bool { return p.coversHere(path) || p.coversAnywhere(path) }

// coversHere is Covers, but for names at any depth. Both parts are called by
// protects itself: without Go's scheduler a stack is 800 bytes.
//
//go:nosplit
//go:norace
func (p *Protected) coversHere(path string) bool {
	if !p.Pattern {
		return Contains(p.Path, path)
	}
	start := p.lastName()
	if len(path) < start || path[:start] != p.Path[:start] {
		return false
	}
	end := start
	for end < len(path) && path[end] != '/' {
		end++
	}
	return MatchName(p.Path[start:], path[start:end])
}

// lastName is where the last name of the path begins.
//
//go:nosplit
//go:norace
func (p *Protected) lastName() int {
	start := len(p.Path)
	for start > 0 && p.Path[start-1] != '/' {
		start--
	}
	return start
}

// anywhere is how the directory of a pattern ends that counts at any depth below
// the part before it: that is the project's. See [Protected.Anywhere].
const anywhere = "/**/"

// Anywhere returns the directory below which the pattern counts at any depth, and
// the pattern of the last name. is is false for all other paths.
func (p *Protected) Anywhere() (dir, name string, is bool) {
	if !p.Pattern {
		return "", "", false
	}
	above, name := filepath.Split(p.Path)
	dir, is = strings.CutSuffix(above, anywhere)
	return dir, name, is && dir != ""
}

// LeftOut reports whether a pattern for any depth does not count in directories
// of this name: what package managers fetch, and what git keeps.
//
//go:nosplit
//go:norace
func LeftOut(name string) bool { return name == "node_modules" || name == ".git" }

// coversAnywhere is Covers of a pattern that counts at any depth: a name of the
// path matches it.
//
//go:nosplit
//go:norace
func (p *Protected) coversAnywhere(path string) bool {
	last := 0
	if p.Pattern {
		last = p.lastName()
	}
	top := last - len(anywhere) // the length of the directory
	if top <= 0 || p.Path[top:last] != anywhere || len(path) <= top || !Contains(p.Path[:top], path) {
		return false
	}
	for start := top + 1; start < len(path); {
		end := start
		for end < len(path) && path[end] != '/' {
			end++
		}
		if MatchName(p.Path[last:], path[start:end]) {
			return true
		}
		if LeftOut(path[start:end]) {
			return false
		}
		start = end + 1
	}
	return false
}

// Contains reports whether path is dir or lies below it. Both are absolute and
// clean. It may be called without Go's scheduler.
//
//go:nosplit
//go:norace
func Contains(dir, path string) bool {
	if len(path) <= len(dir) {
		return path == dir
	}
	return dir == "/" || path[len(dir)] == '/' && path[:len(dir)] == dir
}

// MatchName reports whether a name matches a pattern in which each * stands for
// any characters. A project's file chooses patterns and a session names, so no
// part of the pattern is tried again once a later one fits: the first place that a
// part fits is as good as any later one. It may be called without Go's scheduler.
//
//go:nosplit
//go:norace
func MatchName(pattern, name string) bool {
	at, part, tried := 0, -1, 0 // part begins after the last *, and is tried at a place of the name
	for i := 0; i < len(name); {
		switch {
		case at < len(pattern) && pattern[at] == '*':
			at++
			part, tried = at, i
		case at < len(pattern) && pattern[at] == name[i]:
			at++
			i++
		case part >= 0:
			tried++
			at, i = part, tried
		default:
			return false
		}
	}
	for at < len(pattern) && pattern[at] == '*' {
		at++
	}
	return at == len(pattern)
}
