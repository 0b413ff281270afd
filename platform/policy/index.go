package policy

import (
	"path/filepath"
	"strings"
)

// Index answers what a policy says at many paths. Policy compares a path with
// every entry of its lists, which is quadratic for lists of thousands. An index
// climbs from the path to the root instead. It may be used concurrently, and
// knows nothing of later changes of the policy.
type Index struct {
	policy    *Policy
	rules     map[string]Access
	sockets   map[string]bool
	hidden    map[string]int // the first entry of a path
	temporary map[string]int
	protected map[string]bool
	reopened  map[string]bool
	patterns  map[string][]string // names by their directory
	anywhere  []Protected
}

// NewIndex returns an index of the policy's lists as they are now.
func NewIndex(p *Policy) *Index {
	x := &Index{
		policy: p, rules: map[string]Access{}, sockets: map[string]bool{}, hidden: map[string]int{},
		temporary: map[string]int{}, protected: map[string]bool{}, patterns: map[string][]string{},
		reopened: map[string]bool{},
	}
	for _, path := range p.Reopened {
		x.reopened[path] = true
	}
	for _, rule := range p.Rules {
		x.rules[rule.Path] |= rule.Access
	}
	for _, socket := range p.UnixSockets {
		if socket.Path != "" {
			x.sockets[socket.Path] = true
		}
	}
	for i := len(p.Hidden) - 1; i >= 0; i-- {
		x.hidden[p.Hidden[i].Path] = i
	}
	for i := len(p.Temporary) - 1; i >= 0; i-- {
		x.temporary[p.Temporary[i].Path] = i
	}
	for _, one := range p.Protected {
		switch {
		case one.Creatable:
		case one.Pattern:
			if _, _, is := one.Anywhere(); is {
				x.anywhere = append(x.anywhere, one)
				continue
			}
			dir, name := filepath.Split(one.Path)
			x.patterns[dir] = append(x.patterns[dir], name)
		default:
			x.protected[one.Path] = true
		}
	}
	return x
}

// At is Policy.At.
func (x *Index) At(path string) Access {
	path = x.policy.Inside(path)
	if x.hiddenAt(path) >= 0 {
		return 0
	}
	access := x.ruled(path)
	if access.Has(Write) && x.Protects(path) {
		access &^= Write
	}
	return access
}

// Writable reports whether a rule lets the session write a path, as
// Policy.Writable does.
func (x *Index) Writable(path string) bool { return x.ruled(path).Has(Write) }

// ruled is the union of what the rules give at a path.
func (x *Index) ruled(path string) Access {
	var access Access
	below := false
	for dir := range Upwards(path) {
		access |= x.given(dir, below)
		below = below || x.granted(dir)
	}
	return access
}

// given is what the rule for a path gives there and below. below says that
// something between has a rule of its own.
func (x *Index) given(path string, below bool) Access {
	access := x.rules[path]
	if _, own := x.temporary[path]; own && below {
		access &^= Write
	}
	return access
}

// granted reports whether a path has a rule, or is an allowed socket.
func (x *Index) granted(path string) bool {
	_, ruled := x.rules[path]
	return ruled || x.sockets[path]
}

// HiddenAt is Policy.HiddenAt.
func (x *Index) HiddenAt(path string) (Hidden, bool) {
	if at := x.hiddenAt(path); at >= 0 {
		return x.policy.Hidden[at], true
	}
	return Hidden{}, false
}

func (x *Index) hiddenAt(path string) int {
	found := -1
	for dir := range Upwards(path) {
		if at, is := x.hidden[dir]; is && (found < 0 || at < found) && !x.inTemporary(dir) {
			found = at
		}
		if x.granted(dir) {
			break // what is granted below a hidden path is not hidden by that
		}
	}
	return found
}

// inTemporary reports whether a path is in a directory of the project's own, and
// not mounted back.
func (x *Index) inTemporary(path string) bool {
	_, own := x.TemporaryAt(path)
	return own
}

// TemporaryAt is Policy.TemporaryAt.
func (x *Index) TemporaryAt(path string) (Temporary, bool) {
	found := -1
	for dir := range Upwards(path) {
		if at, is := x.temporary[dir]; is && (found < 0 || at < found) {
			found = at
		}
	}
	if found < 0 {
		return Temporary{}, false
	}
	own := x.policy.Temporary[found]
	for dir := range Upwards(path) {
		if dir == own.Path {
			break
		}
		if x.granted(dir) {
			return own, false
		}
	}
	return own, true
}

// Outside is Policy.Outside.
func (x *Index) Outside(path string) Access {
	if _, own := x.TemporaryAt(path); own || x.policy.Inside(path) != path {
		return 0
	}
	return x.At(path)
}

// Protects reports whether a path is protected, and may not be created.
func (x *Index) Protects(path string) bool {
	for i := range x.anywhere {
		if x.anywhere[i].covers(path) {
			return true
		}
	}
	reopened := false
	for dir := range Upwards(path) {
		if x.protected[dir] && !reopened {
			return true
		}
		above, name := filepath.Split(dir)
		for _, pattern := range x.patterns[above] {
			if MatchName(pattern, name) {
				return true
			}
		}
		reopened = reopened || x.reopened[dir]
	}
	return false
}

// Upwards yields a clean absolute path and its parents up to the root.
func Upwards(path string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for yield(path) && len(path) > 1 {
			path = path[:max(1, strings.LastIndexByte(path, '/'))]
		}
	}
}
