package compile

import (
	"path/filepath"
	"slices"

	"github.com/sandbox-sidecar/sandbox-sidecar/display"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/document"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/sensitive"
)

// diagnose adds diagnostics on settings that count but probably not as meant:
// grants of more than it seems, and keys that contradict each other. It checks
// only the layers that count as they are written, because an untrusted
// project's file cannot grant anything.
func (e *evaluation) diagnose(r *reporter) {
	e.diagnoseSwitches(r)
	e.diagnoseShell(r)
	writers := e.writers()
	for _, g := range e.granted {
		if g.origin.File == policy.OriginBuiltIn || g.origin.File == policy.OriginSession ||
			g.origin.Key == toolchainsKey {
			continue
		}
		if _, own := e.policy.TemporaryAt(g.path); own && !g.access.Has(policy.Write) && g.origin.Entry == "" {
			r.add(g.origin.File, g.at, document.SeverityWarning, g.origin.Key,
				"%s has no effect: sessions have their own; list the paths in it that they need", display.Quote(g.text))
			continue
		}
		e.diagnoseSensitive(r, g)
		e.diagnoseWider(r, g, writers)
		e.diagnoseProtected(r, g)
	}
	e.diagnoseSockets(r)
	e.diagnoseHosts(r)
	e.diagnoseCredentials(r)
	e.diagnoseMoved(r)
}

// diagnoseSensitive finds a grant of keys or passwords. A machine without
// namespaces hides none.
func (e *evaluation) diagnoseSensitive(r *reporter, g grant) {
	shown, covered := e.sensitive.Opens(g.path, func(path string) bool { return path != g.path && e.hides(path) })
	what := shown
	switch {
	case shown == "" && covered == "":
		return
	case shown == "":
		what = covered + " where there are no namespaces"
	case covered != "":
		what += "; without namespaces " + covered + ", too"
	}
	severity, text := document.SeverityWarning, g.text
	if g.origin.Entry != "" {
		severity, text = document.SeverityInfo, g.origin.Entry // the mode's name says so
	}
	r.add(g.origin.File, g.at, severity, g.origin.Key, "%s lets sessions %s %s", display.Quote(text),
		verbs(g.access), what)
}

// hides reports whether sessions do not see a path, where there are namespaces.
func (e *evaluation) hides(path string) bool {
	_, hidden := e.policy.HiddenAt(path)
	return hidden && e.host.Platform == "linux"
}

func (e *evaluation) diagnoseSwitches(r *reporter) {
	set := func(key string) (origin, bool) {
		from, ok := e.user.from[key]
		return from, ok
	}
	neither := *e.merged.Enabled && *e.merged.ApplyTo == document.ApplyToNeither && !e.othersRestricted()
	if from, ok := set(applyToKey); ok && neither {
		r.add(from.file, from.At, document.SeverityWarning, applyToKey,
			`"neither" restricts nothing, although enabled is true`)
	}
	_, required := e.bounds.from[enabledKey]
	if _, ok := set(enabledKey); !ok && !required && !e.othersRestricted() {
		// One diagnostic, at the first key of the file that counts most. Zed's
		// permissions are for Zed, too.
		key := ""
		for _, l := range document.Keys() {
			from, ok := set(l.Name)
			ok = ok && !slices.Contains(auditKeys, l.Name) // these need no sandbox
			if ok && !document.OfAgent(from.Span) && (key == "" || later(from, e.user.from[key])) {
				key = l.Name
			}
		}
		if from := e.user.from[key]; key != "" {
			r.add(from.file, from.At, document.SeverityWarning, key,
				`nothing is restricted as long as "enabled" is not true`)
		}
	}
	for _, row := range scalars {
		switch from, ok := set(row.key); {
		case !ok:
		case !row.hasEffect(e.host.Platform):
			r.add(from.file, from.At, document.SeverityInfo, row.key, "has an effect on macOS only")
		case row.useless != nil && row.useless(e) != "":
			r.add(from.file, from.At, document.SeverityWarning, row.key, "%s", row.useless(e))
		}
	}
}

// later reports whether a comes before b in the same file.
func later(a, b origin) bool {
	return a.file == b.file && (a.At.Line < b.At.Line || a.At.Line == b.At.Line && a.At.Column < b.At.Column)
}

// diagnoseWider finds a grant for writing that covers one without. The author of
// the latter may think that it keeps something as it is. writers are the grants
// for writing by path: comparing each grant with each other is too slow for
// thousands.
func (e *evaluation) diagnoseWider(r *reporter, g grant, writers map[string]grant) {
	if g.access.Has(policy.Write) {
		return
	}
	for path := g.path; ; path = filepath.Dir(path) {
		nearest, found := writers[path]
		rule := policy.Rule{Path: nearest.path, Access: nearest.access}
		if found && e.policy.Given(rule, g.path).Has(policy.Write) {
			r.add(g.origin.File, g.at, document.SeverityWarning, g.origin.Key,
				"%s can be written all the same: %s is granted (%s) by %s",
				display.Quote(g.text), display.Quote(nearest.path), nearest.access, nearest.origin)
			return
		}
		if path == filepath.Dir(path) {
			return
		}
	}
}

// writers are the grants for writing by their paths; of several the last.
func (e *evaluation) writers() map[string]grant {
	writers := map[string]grant{}
	for _, g := range e.granted {
		if g.access.Has(policy.Write) && !g.private {
			writers[g.path] = g
		}
	}
	return writers
}

// secretDiagnostics warns of start-up files that sessions may read and that
// assign what looks like a secret. It names file, line and variable, never the
// value.
func (e *evaluation) secretDiagnostics() []document.FileDiagnostic {
	r := e.reporter()
	if e.host.Home == "" || e.restricted == (document.Kinds{}) {
		return nil
	}
	for _, name := range sensitive.StartupFiles {
		file := filepath.Join(e.host.Home, name)
		target := e.Resolve(file)
		if !target.Exists || !target.Mode.IsRegular() {
			continue
		}
		rule, readable := e.policy.Find(policy.Read, target.Path)
		if !readable {
			continue
		}
		data, err := e.FS.ReadFile(target.Path)
		if err != nil || len(data) > sensitive.MaxStartupFile {
			continue
		}
		for _, found := range sensitive.Assignments(file, string(data)) {
			r.add(file, found.At, document.SeverityWarning, "", "%s looks like a secret, and sessions may read "+
				"this file (%s); keep it elsewhere", found.Name, rule.Origin)
		}
	}
	return r.list
}
