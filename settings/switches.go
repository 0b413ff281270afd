package settings

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/sandbox-sidecar/sandbox-sidecar/places"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/document"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/managed"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/resolve"
)

// Undecided reports whether no settings file says if the sandbox is on, so that
// the user may not know that it is off.
func (c *Compiled) Undecided() bool {
	return !c.Policy.Restricted && slices.ContainsFunc(c.Switches, func(s Switch) bool {
		return s.Key == enabledKey && s.Origin.File == policy.OriginBuiltIn
	})
}

// originOf is the origin of the value of a key as a whole.
func (e *evaluation) originOf(key string) policy.Origin {
	if from, bound := e.bounds.from[key]; bound {
		return from.policy(key, from.At)
	}
	return e.layers.originOf(key)
}

const shellKey = "shell"

// shell is the program with its arguments that a kind of session runs; nil: the
// usual one. An untrusted project has no say, because sessions that are not
// sandboxed run it, too.
func (s *Snapshot) shell(e *evaluation, kind document.Kind) []string {
	argv := e.merged.Shell
	if len(argv) == 0 && kind == document.KindTerminal {
		for _, state := range s.user {
			if state.Good != nil && state.Good.EditorShell != nil {
				argv = state.Good.EditorShell
			}
		}
	}
	if !isShell(argv) {
		return nil
	}
	program := argv[0]
	if strings.HasPrefix(program, "~/") {
		var err error
		if program, err = s.host.Expand(program, ""); err != nil {
			return nil
		}
	}
	// An editor's shell may be this program, so that the editor's own terminals
	// are sandboxed.
	if filepath.Base(program) == "sandbox-sidecar" || slices.Contains(s.ownPaths, program) {
		return nil
	}
	return append([]string{program}, argv[1:]...)
}

// isShell reports whether a list is a program with its arguments: a name in
// PATH, or an absolute path, which may begin with "~/".
func isShell(argv []string) bool {
	if len(argv) == 0 || argv[0] == "" {
		return false
	}
	return !strings.Contains(argv[0], "/") || filepath.IsAbs(argv[0]) || strings.HasPrefix(argv[0], "~/")
}

// diagnoseShell reports a shell that cannot be one.
func (e *evaluation) diagnoseShell(r *reporter) {
	if from, set := e.user.from[shellKey]; set && !isShell(e.user.values.Shell) {
		r.add(from.file, from.At, document.SeverityError, shellKey,
			"expected a program with its arguments: a name in PATH, or an absolute path; the usual shell runs")
	}
}

// auditOf is where the user's settings and the organisation's want an audit trail.
// If both want one, it is written for both.
func auditOf(l layers, view fsView) policy.Audit {
	var to policy.Audit
	add := func(where document.Audit, dir string) {
		switch where {
		case document.AuditFile:
			to.Dir = dir
		case document.AuditJournal:
			to.Journal = true
		}
	}
	dirs := auditDirs(view.View, view.host)
	if len(dirs) == 0 {
		dirs = []string{noAuditDir}
	}
	add(*l.base.Audit, dirs[0])
	to.Required, to.Managed = *l.base.AuditRequired, managed.Holds(l.user.from[auditKey].file)
	for _, bound := range l.bounds {
		if where := bound.values.Audit; where != nil && *where != document.AuditOff {
			add(*where, dirs[len(dirs)-1])
			to.Managed = true
		}
		to.Required = to.Required || bound.values.AuditRequired != nil && *bound.values.AuditRequired
	}
	return to
}

// audit records that the file wants a trail; see auditOf.
func (b bounding) audit(s *settings) {
	if v := s.values.Audit; v != nil && *v != document.AuditOff {
		b.takes(s, auditKey)
	}
}

// noAuditDir stands for a directory that nobody can make, so that each line is
// lost, and the sidecar warns of that.
const noAuditDir = "/dev/null/no-home-directory"

// auditDirs are the directories of audit trails: first for the user's settings,
// and last for the organisation's, which no variable moves. A symlink in the
// place of the directory itself is not followed.
func auditDirs(view *resolve.View, h resolve.Host) []string {
	var list []string
	for _, state := range []string{h.Places().State(), places.User{Home: h.Account}.State()} {
		if state != "" {
			list = append(list, places.Audit(view.Resolve(state).Path))
		}
	}
	return slices.Compact(list)
}

// guardAudit protects audit trails in places that the grants open. A directory
// must exist to be protected, so create lists it.
func guardAudit(view fsView, to policy.Audit, granted cover) (list []policy.Protected, create []string) {
	for _, dir := range auditDirs(view.View, view.host) {
		wanted := to.Dir == dir
		if !view.Resolve(dir).Exists && !wanted || !granted.at(dir).Has(policy.Write) {
			continue
		}
		list = append(list, policy.Protected{
			Path: dir, Origin: policy.Origin{File: policy.OriginBuiltIn, Key: guardKey}, Decides: true,
		})
		if wanted {
			create = append(create, dir)
		}
	}
	return list, create
}

// audit hides audit trails, as they tell of other projects.
func (h *hider) audit() {
	for _, dir := range auditDirs(h.view.View, h.view.host) {
		if (h.view.Resolve(dir).Exists || dir == h.auditing.Dir) && h.cover.at(dir) != 0 {
			h.add(dir, policy.Origin{File: policy.OriginBuiltIn, Key: hiddenKey})
		}
	}
}

// Audit is where events are noted that belong to no session: wherever one of
// the kinds of session is.
func (s *Snapshot) Audit() policy.Audit {
	return s.evaluation(document.KindTool).policy.Audit.With(s.evaluation(document.KindTerminal).policy.Audit)
}

// AuditDirs are the directories in which trails may be.
func (s *Snapshot) AuditDirs() []string { return auditDirs(resolve.NewView(s.files), s.host) }
