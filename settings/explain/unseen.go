package explain

import (
	"fmt"
	"slices"

	"github.com/sandbox-sidecar/sandbox-sidecar/display"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/compile"
)

// cached reports whether the target is in a cache that is private.
func (x *explainer) cached() bool {
	_, cached := x.Policy.CacheAt(x.end.Path)
	return cached
}

// ownTemporary reports whether the target is in a directory of temporary files
// of the project's own.
func (x *explainer) ownTemporary() bool {
	_, own := x.live().TemporaryAt(x.end.Path)
	return own
}

// unseen explains why a target is refused although it may be granted: sessions
// do not see it, or a symlink on the way to it. It returns false if they do.
func (x *explainer) unseen(a attemptKind, granted bool) bool {
	names := []string{}
	for _, link := range x.end.Links {
		names = append(names, link.Path)
	}
	for _, dir := range x.end.Left {
		// A session can enter the directories on the way to what is granted in a
		// hidden directory. Root can enter the hidden directory itself.
		hidden, is := x.live().HiddenAt(dir)
		if !is || !x.grantsBelow(dir) && (dir != hidden.Path || !x.Host.Root) {
			names = append(names, dir)
		}
	}
	for _, name := range append(slices.Clone(names), x.end.Path) {
		if hidden, is := x.live().HiddenAt(name); is {
			x.hidden(a, hidden)
			x.byLink(name)
			return true
		}
	}
	if granted && x.end.Exists {
		names = append(names, x.end.Path)
	}
	for _, name := range names {
		if t, own := x.live().TemporaryAt(name); own && x.elsewhere(t, name) {
			x.temporary(a, t, name)
			x.byLink(name)
			return true
		}
	}
	return false
}

// byLink takes the suggestion back if a session does not even see the symlink
// that leads to the target. A grant of a symlink is one of what it leads to.
func (x *explainer) byLink(name string) {
	if name != x.end.Path {
		x.Key, x.Value, x.Holds, x.Acts, x.Set = "", "", "", "", ""
		x.Hint = fmt.Sprintf("%s is a symlink; name what it leads to: %s", display.Quote(name),
			display.Quote(x.end.Path))
	}
}

// elsewhere reports whether a path is another program's temporary file, which a
// session does not see. The way to what is granted there is not.
func (x *explainer) elsewhere(t policy.Temporary, path string) bool {
	return path != t.Path && !x.grantsBelow(path)
}

// grantsBelow reports whether a rule grants a path or something below it.
func (x *explainer) grantsBelow(path string) bool {
	return slices.ContainsFunc(x.live().Rules, func(rule policy.Rule) bool { return policy.Contains(path, rule.Path) })
}

// temporary explains why another program's temporary file is refused.
func (x *explainer) temporary(a attemptKind, t policy.Temporary, path string) {
	x.refuse(&DecidingRule{Path: t.Path, Origin: x.OriginOf(temporaryKey)}, x.WrittenKey(a.key), path,
		"a session does not see %s, as its project has a %s of its own", display.Quote(path), t.Path)
	if x.OriginOf(temporaryKey).File == x.ProjectFile() && x.ProjectFile() != "" {
		x.Hint = fmt.Sprintf("%s asks for it", display.Quote(x.ProjectFile()))
	}
}

// hidden explains why a hidden path is refused.
func (x *explainer) hidden(a attemptKind, h policy.Hidden) {
	x.refuse(&DecidingRule{Path: h.Path, Origin: h.Origin}, x.WrittenKey(a.key), x.end.Path,
		"%s is hidden from sessions by %s", display.Quote(h.Path), h.Origin)
	switch what := x.holds(x.end.Path); {
	case h.Origin.Reason == compile.PrivateReason && x.end.Exists:
		x.Reason = fmt.Sprintf("%s is private to you, so it is hidden from sessions by %s", display.Quote(h.Path),
			h.Origin)
		x.doubt = "it is private to you and may hold a secret"
		x.Holds = "what is private to you"
		x.Hint = "careful: it may hold a secret"
	case h.Origin.Reason == compile.VariablesReason && x.end.Exists:
		x.doubt = "it holds variables of the repository above, and may hold a secret"
		x.Holds = h.Origin.Reason
		x.Hint = "careful: it may hold a secret"
	case h.Origin.File == x.ProjectFile() && x.ProjectFile() != "":
		x.Key, x.Value = "", ""
		x.Hint = fmt.Sprintf("the project hides it; only a change of %s shows it", display.Quote(x.ProjectFile()))
	case !x.end.Exists: // a grant of what does not exist shows nothing
		x.Key, x.Value = "", ""
	case what != "":
		x.Hint, x.Holds = x.careful(what), what
	case x.actedOn(x.end.Path):
	case h.Origin.File == policy.OriginBuiltIn:
		x.Holds = "the system's passwords and keys"
		x.Hint = "careful: that would open " + x.Holds
	default:
		x.Holds = "what your settings hide"
		x.Hint = fmt.Sprintf("careful: %s hides it", h.Origin)
	}
}

// emptied reports whether the target is in a cache that sessions find empty.
func (x *explainer) emptied() bool {
	cache, is := x.Policy.CacheAt(x.end.Path)
	return is && cache.Empty && cache.Path != x.end.Path
}
