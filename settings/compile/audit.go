package compile

import (
	"slices"

	"github.com/sandbox-sidecar/sandbox-sidecar/places"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/document"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/managed"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/resolve"
)

// auditKeys are about the user's own records. A project's file has no say in
// them.
var auditKeys = []string{auditKey, auditRequiredKey, auditArgvKey}

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

// auditArgv takes over what the file says, which the user cannot undo in either
// direction. If several files say something, the strict value counts.
func (b bounding) auditArgv(s *settings) {
	_, decided := b.bounds.from[auditArgvKey]
	if v := s.values.AuditArgv; v != nil && (!decided || *v == document.AuditArgvProgram) {
		b.takes(s, auditArgvKey)
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
	for _, state := range []string{h.Kept().State(), places.User{Home: h.Account}.State()} {
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
			Path: dir, Origin: policy.Origin{File: policy.OriginBuiltIn, Key: GuardKey}, Decides: true,
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
