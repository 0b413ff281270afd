package compile

import (
	"cmp"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sandbox-sidecar/sandbox-sidecar/display"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/document"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/resolve"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/risks"
)

const hiddenKey = "hidden_paths"

// chooseHidden unites the built-in hidden paths with those of the user and of
// the project, which can only add some. alone is the evaluation without the
// project's file if that is trusted. unclear is the first entry that could not
// be understood, parts are what sessions read of hidden files, and notes are for
// the user. writable is what some session may
// write.
func chooseHidden(
	view fsView, l layers, p project, granted []grant, writable cover, alone *evaluation, r *reporter,
) (list []policy.Hidden, parts []copied, notes []string, unclear *document.FileDiagnostic) {
	h := hider{
		view: view, project: p, granted: granted, cover: coverOf(granted), reporter: r,
		found: map[string]policy.Origin{}, byPath: map[string]int{},
	}
	for i, g := range slices.Backward(granted) {
		h.byPath[g.path] = i
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
	if view.host.Platform == "linux" {
		notes = h.private(namedPaths(view, writable))
	}
	list = []policy.Hidden{}
	for path, from := range h.found {
		list = append(list, policy.Hidden{Path: path, Origin: from})
	}
	slices.SortFunc(list, func(a, b policy.Hidden) int { return cmp.Compare(a.Path, b.Path) })
	return list, h.parts, notes, h.unclear
}

// hider collects hidden paths.
type hider struct {
	view    fsView
	project project
	granted []grant        // without an untrusted project's
	byPath  map[string]int // the first of granted
	cover   cover          // of granted
	// auditing is where the audit trail of these sessions is.
	auditing policy.Audit
	*reporter
	found   map[string]policy.Origin
	parts   []copied
	unclear *document.FileDiagnostic
}

// add hides a real path, unless a grant is of exactly this path. It returns that
// grant.
func (h *hider) add(path string, from policy.Origin) (meant *grant) {
	if i, is := h.byPath[path]; is {
		return &h.granted[i]
	}
	if _, known := h.found[path]; !known {
		h.found[path] = from
	}
	return nil
}

// builtIn hides the places of keys, tokens and passwords, but for what a variable
// says to be in the project. A set of toolchains that opens one needs it.
func (h *hider) builtIn() {
	from := policy.Origin{File: policy.OriginBuiltIn, Key: hiddenKey}
	for _, place := range h.view.sensitive.All {
		needed := slices.ContainsFunc(h.granted, func(g grant) bool {
			return g.origin.Key == toolchainsKey && policy.Contains(g.path, place.Path)
		})
		meant := place.Moved && h.project.path != "" && policy.Contains(h.project.path, place.Path)
		switch {
		case !place.Exists || needed && place.Mixed == "" || meant || h.cover.at(place.Path) == 0:
		case place.Moved && !place.Hidden && !namesSettings(place.Named) && h.ofMachine(place.Path):
			// Sessions may need it for another purpose.
		case place.Mixed != "":
			h.mixed(place.Path, place.Named, place.Mixed, place.Format, from)
		case place.Hidden:
			h.add(place.Path, from)
		}
	}
	h.audit()
	from.Reason = VariablesReason
	for _, path := range h.project.parent.secrets() {
		h.add(path, from)
	}
}

// ofMachine reports whether sessions read a path by a built-in grant. What they also
// write, as /tmp, is the user's: there is no store of the machine's.
func (h *hider) ofMachine(path string) bool {
	return slices.ContainsFunc(h.granted, func(g grant) bool {
		return g.origin.File == policy.OriginBuiltIn && !g.access.Has(policy.Write) && policy.Contains(g.path, path)
	})
}

// mixed hides a file of settings that may hold a secret, unless it holds none.
// Sessions read the rest of it, if another row of the table does not hide it.
// without is what its program does without it.
func (h *hider) mixed(path, named, without string, format risks.Format, from policy.Origin) {
	target := h.view.Resolve(named)
	if !target.Mode.IsRegular() {
		return // such as /dev/null, which a variable may name
	}
	part, whole := h.view.partOf(target, without, format)
	if whole || h.add(path, from) != nil {
		return
	}
	for _, other := range h.view.sensitive.All {
		if other.Hidden && other.Mixed == "" && policy.Contains(other.Path, path) {
			return
		}
	}
	part.grant = grant{path: path, links: target.Links, request: request{
		text: named, access: policy.Read, origin: from,
	}}
	part.wider = true
	h.parts = append(h.parts, part)
}

// noEntry ends the diagnostic of an entry that hides nothing.
const noEntry = "; the entry does not count"

// layer hides what the entries of one layer name.
func (h *hider) layer(s *settings) {
	from, ok := s.from[hiddenKey]
	if !ok {
		return
	}
	for i, entry := range s.values.HiddenPaths {
		at := from.element(i)
		doubt := func(message string) {
			h.reporter.add(from.file, at, document.SeverityError, hiddenKey, "%s: %s", display.Quote(entry), message)
			if h.unclear == nil {
				h.unclear = &document.FileDiagnostic{File: from.file, Diagnostic: document.Diagnostic{
					Line: at.Line, Column: at.Column, Severity: document.SeverityError, Key: hiddenKey,
					Message: fmt.Sprintf("%s: %s", display.Quote(entry), message),
				}}
			}
		}
		if name, is, err := nameAnywhere(entry); err != nil {
			doubt(err.Error() + noEntry)
			continue
		} else if is {
			if h.project.path != "" {
				h.entry(entry, h.view.anywhere(h.project, name), from.policy(hiddenKey, at), at)
				h.anywhereInParent(name, from.policy(hiddenKey, at))
			}
			continue
		}
		path, err := h.view.host.Expand(entry, h.project.path)
		switch dir, name := filepath.Split(h.written(entry, path)); {
		case err != nil && h.project.path == "" && !strings.HasPrefix(entry, "~") && !strings.HasPrefix(entry, "$"):
			// It is relative to a project, and there is none.
		case err != nil:
			doubt(err.Error() + noEntry)
		case filepath.Clean(path) == "/":
			doubt("nothing would be left" + noEntry)
		case strings.Contains(dir, "*"):
			doubt("only the last name may contain *" + noEntry)
		case strings.Contains(name, "*"):
			h.entry(entry, h.view.matches(path), from.policy(hiddenKey, at), at)
			if within := filepath.Dir(filepath.Clean(path)); len(h.view.names(within)) >= resolve.MaxNames {
				doubt(fmt.Sprintf("%s holds %d files or more, so not all that match are found: name the directory",
					display.Quote(within), resolve.MaxNames))
			}
		default:
			h.entry(entry, []string{path}, from.policy(hiddenKey, at), at)
		}
		h.alsoInParent(entry, from.policy(hiddenKey, at))
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

// hide hides the file's paths, whatever is granted there. A project cannot lie
// in one.
func (b bounding) hide(s *settings) {
	if !s.sets(hiddenKey) {
		return
	}
	h := hider{
		view: b.view, project: b.project, cover: cover{}, reporter: b.reporter, found: map[string]policy.Origin{},
	}
	h.layer(s)
	b.refuse(h.unclear)
	paths, hidden := slices.Sorted(maps.Keys(h.found)), map[string]bool{}
	within := func(granted string) bool {
		for dir := range upwards(granted) {
			if granted != "" && hidden[dir] {
				return true
			}
		}
		return false
	}
	diagnose := func(from policy.Origin, format string, args ...any) {
		b.refuse(&document.FileDiagnostic{File: from.File, Diagnostic: document.Diagnostic{
			Line: max(1, from.Line), Column: 1, Severity: document.SeverityError, Key: hiddenKey,
			Message: fmt.Sprintf(format, args...),
		}})
	}
	for _, path := range paths {
		from := h.found[path]
		b.bounds.hidden = append(b.bounds.hidden, policy.Hidden{Path: path, Origin: from})
		if b.project.path != "" && policy.Contains(path, b.project.path) {
			diagnose(from, "the project %s lies in a path that your organisation hides", display.Quote(b.project.path))
			continue
		}
		hidden[path] = true
	}
	b.setRules(slices.DeleteFunc(slices.Clone(b.policy.Rules), func(r policy.Rule) bool { return within(r.Path) }))
	b.setSockets(slices.DeleteFunc(slices.Clone(b.evaluation.sockets), func(s socket) bool { return within(s.path) }))
	left := policy.NewIndex(&b.policy)
	added := map[string]bool{}
	for _, path := range paths {
		switch from := h.found[path]; {
		case !hidden[path] || left.At(path) == 0:
		case b.fsView.host.Platform != "linux":
			diagnose(from, "macOS cannot hide %s, which %s holds", display.Quote(path), "a granted directory")
		default:
			added[path] = true
		}
	}
	if len(added) > 0 {
		same := func(h policy.Hidden) bool { return added[h.Path] }
		b.policy.Hidden = slices.DeleteFunc(slices.Clone(b.policy.Hidden), same)
		for path := range added {
			b.policy.Hidden = append(b.policy.Hidden, policy.Hidden{Path: path, Origin: h.found[path]})
		}
		b.bounds.protects = true
	}
	slices.SortFunc(b.policy.Hidden, func(x, y policy.Hidden) int { return cmp.Compare(x.Path, y.Path) })
	b.decides(s, hiddenKey, slices.Concat(b.merged.HiddenPaths, s.values.HiddenPaths))
}
