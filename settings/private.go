package settings

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sandbox-sidecar/sandbox-sidecar/display"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/document"
)

const hiddenKey = "hidden_paths"

// temporaryPaths are the directories that all programs share for temporary
// files.
var temporaryPaths = map[string][]string{
	"linux": {"/tmp", "/var/tmp", "/dev/shm"},
	// Sessions have them in common with other programs, and TMPDIR besides.
	"darwin": {"/private/tmp"},
}

// temporaryOf lists the directories of temporary files that are the project's
// own: each one of which anything is granted. One that another key than
// system_paths.read_write lets sessions write is meant to be shared, or one in a
// directory that such a key lets them write. forced: only the session itself may
// share one.
func temporaryOf(view fsView, granted []grant, forced bool) []policy.Temporary {
	list := []policy.Temporary{}
	for _, path := range temporaryPaths[view.host.Platform] {
		target := view.Resolve(path)
		var from *policy.Origin
		meant := false
		for _, g := range granted {
			if !policy.Contains(g.path, target.Path) {
				continue
			}
			ofSystem := g.origin.Key == "system_paths.read_write"
			onPurpose := !ofSystem && g.access.Has(policy.Write)
			meant = meant || onPurpose && (!forced || g.origin.File == policy.OriginSession)
			if from == nil || ofSystem && g.path == target.Path {
				from = &g.origin
			}
		}
		known := slices.ContainsFunc(list, func(t policy.Temporary) bool { return t.Path == target.Path })
		if target.Err == nil && target.Exists && target.Mode.IsDir() && from != nil && !meant && !known {
			list = append(list, policy.Temporary{Path: target.Path, Origin: *from})
		}
	}
	slices.SortFunc(list, func(a, b policy.Temporary) int { return cmp.Compare(a.Path, b.Path) })
	return list
}

// chooseHidden unites the built-in hidden paths with those of the user and of
// the project, which can only add some. alone is the evaluation without the
// project's file if that is trusted. unclear is the first entry that could not
// be understood.
func chooseHidden(
	view fsView, l layers, p project, granted []grant, alone *evaluation, r *reporter,
) (list []policy.Hidden, unclear *document.FileDiagnostic) {
	h := hider{
		view: view, project: p, granted: granted, cover: coverOf(granted), reporter: r,
		found: map[string]policy.Origin{},
	}
	if view.host.Platform == "linux" {
		h.auditing = auditOf(l, view)
		h.builtIn()
	}
	h.layer(&l.user)
	if l.projectSets(hiddenKey) {
		h.layer(l.project)
		if len(l.project.values.HiddenPaths) > 0 {
			l.tightened.values.HiddenPaths = slices.Concat(l.user.values.HiddenPaths, l.project.values.HiddenPaths)
			l.decide(hiddenKey)
		}
	}
	if alone != nil {
		for _, hidden := range alone.policy.Hidden {
			h.add(hidden.Path, hidden.Origin)
		}
	}
	list = []policy.Hidden{}
	for path, from := range h.found {
		list = append(list, policy.Hidden{Path: path, Origin: from})
	}
	slices.SortFunc(list, func(a, b policy.Hidden) int { return cmp.Compare(a.Path, b.Path) })
	return list, h.unclear
}

// hider collects hidden paths.
type hider struct {
	view    fsView
	project project
	granted []grant // without an untrusted project's
	cover   cover   // of granted
	// auditing is where the audit trail of these sessions is.
	auditing policy.Audit
	*reporter
	found   map[string]policy.Origin
	unclear *document.FileDiagnostic
}

// add hides a real path, unless a grant is of exactly this path. It returns that
// grant.
func (h *hider) add(path string, from policy.Origin) (meant *grant) {
	for i, g := range h.granted {
		if g.path == path {
			return &h.granted[i]
		}
	}
	if _, known := h.found[path]; !known {
		h.found[path] = from
	}
	return nil
}

// builtIn hides the places of keys, tokens and passwords. A set of toolchains
// that opens one needs it.
func (h *hider) builtIn() {
	from := policy.Origin{File: policy.OriginBuiltIn, Key: hiddenKey}
	for _, place := range h.view.sensitive.All {
		needed := slices.ContainsFunc(h.granted, func(g grant) bool {
			return g.origin.Key == toolchainsKey && policy.Contains(g.path, place.Path)
		})
		if place.Exists && !needed && h.cover.at(place.Path) != 0 {
			h.add(place.Path, from)
		}
	}
	h.audit()
	if !h.view.host.Root {
		return
	}
	for _, pattern := range rootsSecrets {
		for _, path := range h.view.matches(pattern) {
			if target := h.view.Resolve(path); target.Exists && h.cover.at(target.Path) != 0 {
				h.add(target.Path, from)
			}
		}
	}
}

// rootsSecrets are what only root can read anyway.
var rootsSecrets = []string{
	"/etc/shadow", "/etc/shadow-", "/etc/gshadow", "/etc/gshadow-", "/etc/ssl/private", "/etc/ssh/ssh_host_*_key",
}

// layer hides what the entries of one layer name.
func (h *hider) layer(s *settings) {
	from, ok := s.from[hiddenKey]
	if !ok {
		return
	}
	for i, entry := range s.values.HiddenPaths {
		at := from.element(i)
		doubt := func(message string) {
			h.reporter.add(from.file, at, document.SeverityError, hiddenKey, "%s: %s; the entry does not count",
				display.Quote(entry), message)
			if h.unclear == nil {
				h.unclear = &document.FileDiagnostic{File: from.file, Diagnostic: document.Diagnostic{
					Line: at.Line, Column: at.Column, Severity: document.SeverityError, Key: hiddenKey,
					Message: fmt.Sprintf("%s: %s", display.Quote(entry), message),
				}}
			}
		}
		path, err := h.view.host.Expand(entry, h.project.path)
		switch dir, name := filepath.Split(h.written(entry, path)); {
		case err != nil && h.project.path == "" && !strings.HasPrefix(entry, "~") && !strings.HasPrefix(entry, "$"):
			// It is relative to a project, and there is none.
		case err != nil:
			doubt(err.Error())
		case filepath.Clean(path) == "/":
			doubt("nothing would be left")
		case strings.Contains(dir, "*"):
			doubt("only the last name may contain *")
		case strings.Contains(name, "*"):
			h.entry(entry, h.view.matches(path), from.policy(hiddenKey, at), at)
		default:
			h.entry(entry, []string{path}, from.policy(hiddenKey, at), at)
		}
	}
}

// written is the part of an entry's path in which a * stands for any characters:
// without the directory that it is relative to. path is not clean yet.
func (h *hider) written(entry, path string) string {
	base := ""
	if strings.HasPrefix(entry, "~") {
		base = h.view.host.Home
	} else if _, absolute := h.view.host.Expand(entry, ""); absolute != nil {
		base = h.project.path
	}
	return filepath.Clean(strings.TrimPrefix(path, base))
}

// entry hides the paths that one entry names.
func (h *hider) entry(text string, paths []string, from policy.Origin, at document.Position) {
	diagnose := func(severity document.Severity, format string, args ...any) {
		h.reporter.add(from.File, at, severity, hiddenKey, "%s"+format, append([]any{display.Quote(text)}, args...)...)
	}
	if h.view.host.Platform != "linux" {
		diagnose(document.SeverityWarning, ": macOS shows hidden paths within the grants")
	}
	for _, path := range paths {
		target := h.view.Resolve(path)
		switch {
		case target.Err != nil:
			diagnose(document.SeverityWarning, ": cannot check %s: %v", display.Quote(target.Path), target.Err)
		case !target.Exists:
			diagnose(document.SeverityInfo, ": there is no %s; the entry counts from when there is, for sessions "+
				"started then", display.Quote(target.Path))
		}
		if meant := h.add(target.Path, from); meant != nil && meant.origin.File == policy.OriginSession {
			diagnose(document.SeverityError, " is the project, which sessions need; the entry does not count")
		} else if meant != nil {
			diagnose(document.SeverityWarning, ": %s is granted by %s; the entry does not count",
				display.Quote(target.Path), meant.origin)
		}
	}
}

// matches lists what a path with a * in its last name stands for, of what
// exists.
func (v fsView) matches(path string) []string {
	dir, pattern := filepath.Split(filepath.Clean(path))
	if !strings.Contains(pattern, "*") {
		return []string{path}
	}
	var list []string
	for _, name := range v.names(filepath.Clean(dir)) {
		if policy.MatchName(pattern, name) {
			list = append(list, dir+name)
		}
	}
	return list
}

// outside is what grants give for what is at a path outside of sessions.
type outside struct {
	cover  cover
	policy *policy.Policy // has the rules, Temporary and Hidden
}

// at is all access to the path; nothing if sessions see something else there.
func (o outside) at(path string) policy.Access {
	within := slices.ContainsFunc(o.policy.Temporary, func(t policy.Temporary) bool {
		return policy.Contains(t.Path, path)
	})
	if _, hidden := o.policy.HiddenAt(path); within || hidden {
		return o.policy.Outside(path)
	}
	return o.cover.at(path)
}

// guardCaches protects the sidecar's cache directory in places that the grants
// open, also if this session has no toolchains: other projects have caches
// there. It must exist to be protected, so create lists it.
func guardCaches(view fsView, granted cover) (list []policy.Protected, create []string) {
	dir := view.host.Places().Cache()
	if view.host.Platform != "linux" || dir == "" {
		return nil, nil
	}
	dir = view.Resolve(dir).Path
	if !granted.at(dir).Has(policy.Write) {
		return nil, nil
	}
	return []policy.Protected{{
		Path: dir, Origin: policy.Origin{File: policy.OriginBuiltIn, Key: guardKey}, Decides: true,
	}}, []string{dir}
}

// cachesOf lists the caches of toolchains that are private. One that lies in
// another is a part of that. A place that the settings or the project also
// grant for writing, or a part of it, is meant to be written.
// If the organisation requires that they are private, only the session's own
// grants share one.
func cachesOf(view fsView, l layers, granted []grant, r *reporter) []policy.Cache {
	caches := []policy.Cache{}
	if view.host.Platform != "linux" {
		return caches
	}
	private, forced := l.isStrict(cachesKey)
	list := slices.DeleteFunc(slices.Clone(granted), func(g grant) bool {
		return !g.cache || !private && !g.alwaysPrivate
	})
	slices.SortFunc(list, func(a, b grant) int { return cmp.Compare(a.path, b.path) })
	for _, g := range list {
		meant := slices.IndexFunc(granted, func(other grant) bool {
			return !other.cache && !other.private && other.access.Has(policy.Write) &&
				other.origin.File != policy.OriginBuiltIn && (!forced || other.origin.File == policy.OriginSession) &&
				(policy.Contains(other.path, g.path) || policy.Contains(g.path, other.path))
		})
		switch {
		case meant >= 0:
			if other := granted[meant]; other.origin.File == policy.OriginSession {
				r.add(g.origin.File, g.at, document.SeverityWarning, toolchainsKey,
					"%s: programs outside use what sessions write to the cache %s, as it is in the project",
					display.Quote(g.text), display.Quote(g.path))
			}
		case slices.ContainsFunc(caches, func(c policy.Cache) bool { return policy.Contains(c.Path, g.path) }):
		default:
			caches = append(caches, policy.Cache{
				Path: g.path, Empty: g.hidden, Always: g.alwaysPrivate, Origin: g.origin,
			})
		}
	}
	return caches
}

// cached reports whether the target is in a cache that is private.
func (x *explainer) cached() bool {
	_, cached := x.policy.CacheAt(x.end.Path)
	return cached
}

// ownTemporary reports whether the target is in a directory of temporary files
// of the project's own.
func (x *explainer) ownTemporary() bool {
	_, own := x.live.TemporaryAt(x.end.Path)
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
		hidden, is := x.live.HiddenAt(dir)
		if !is || !x.grantsBelow(dir) && (dir != hidden.Path || !x.host.Root) {
			names = append(names, dir)
		}
	}
	for _, name := range append(slices.Clone(names), x.end.Path) {
		if hidden, is := x.live.HiddenAt(name); is {
			x.hidden(a, hidden)
			x.byLink(name)
			return true
		}
	}
	if granted && x.end.Exists {
		names = append(names, x.end.Path)
	}
	for _, name := range names {
		if t, own := x.live.TemporaryAt(name); own && x.elsewhere(t, name) {
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
		x.Key, x.Value, x.Holds = "", "", ""
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
	return slices.ContainsFunc(x.live.Rules, func(rule policy.Rule) bool { return policy.Contains(path, rule.Path) })
}

// temporary explains why another program's temporary file is refused.
func (x *explainer) temporary(a attemptKind, t policy.Temporary, path string) {
	x.refuse(&DecidingRule{Path: t.Path, Origin: x.originOf(temporaryKey)}, x.writtenKey(a.key), path,
		"a session does not see %s, as its project has a %s of its own", display.Quote(path), t.Path)
	if x.originOf(temporaryKey).File == x.projectFile && x.projectFile != "" {
		x.Hint = fmt.Sprintf("%s asks for it", display.Quote(x.projectFile))
	}
}

// hidden explains why a hidden path is refused.
func (x *explainer) hidden(a attemptKind, h policy.Hidden) {
	x.refuse(&DecidingRule{Path: h.Path, Origin: h.Origin}, x.writtenKey(a.key), x.end.Path,
		"%s is hidden from sessions by %s", display.Quote(h.Path), h.Origin)
	switch what := x.holds(x.end.Path); {
	case h.Origin.File == x.projectFile && x.projectFile != "":
		x.Key, x.Value = "", ""
		x.Hint = fmt.Sprintf("the project hides it; only a change of %s shows it", display.Quote(x.projectFile))
	case !x.end.Exists: // a grant of what does not exist shows nothing
		x.Key, x.Value = "", ""
	case what != "":
		x.Hint, x.Holds = x.careful(what), what
	case h.Origin.File == policy.OriginBuiltIn:
		x.Holds = "the system's passwords and keys"
		x.Hint = "careful: that would open " + x.Holds
	default:
		x.Hint = "a session sees it if this machine cannot hide paths; \"sandbox-sidecar doctor\" says if it can"
	}
}
