package settings

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
)

// evaluation is what a snapshot means on the file system as it is now: everything of a policy that does not depend on the kind.
type evaluation struct {
	host       host
	resolver   *resolver
	projectDir string
	user       settings
	project    *settings // nil where there is no project file to count

	policy     policy.Policy
	git        gitRepository
	restricted kinds
	writable   cover // all grants for writing, refused ones included
	rules      cover

	merged      Sandbox
	origins     map[string]string
	diagnostics []FileDiagnostic
	refusals    []string // built-in grants that do not count
	forbidden   []place
	// stale are the files of which an older content counts: remarks on it would stand at the wrong lines.
	stale map[string]bool
}

// evaluate resolves, layers and restricts. Its invariant: with a project's file the policy is contained in the one without.
func (s *Snapshot) evaluate() evaluation {
	e := evaluation{
		host: s.host, resolver: newResolver(s.files), projectDir: s.projectDir,
		user: mergeUser(s.user), writable: cover{}, rules: cover{}, origins: map[string]string{}, stale: map[string]bool{},
	}
	e.forbidden = s.forbidden(e.resolver)
	if s.project != nil {
		project := mergeUser([]fileState{*s.project})
		e.project = &project
	}
	for _, state := range s.states() {
		if state.problem != nil {
			e.diagnostics = append(e.diagnostics, FileDiagnostic{state.file, *state.problem})
			e.stale[state.file] = true
		} else if state.good != nil {
			for _, d := range state.good.problems {
				e.diagnostics = append(e.diagnostics, FileDiagnostic{state.file, d})
			}
		}
	}
	e.merged = e.user.withDefaults()
	for key, from := range e.user.from {
		e.origins[key] = from.file
	}
	e.paths()
	e.kinds()
	e.network()
	e.variables()
	e.sockets()
	e.protection()
	e.rest()
	e.diagnostics = sortDiagnostics(e.diagnostics)
	return e
}

func (e *evaluation) report(file string, at position, severity Severity, key, format string, args ...any) {
	if e.stale[file] {
		return
	}
	e.diagnostics = append(e.diagnostics, FileDiagnostic{file, Diagnostic{
		Line: at.line, Column: at.column, Severity: severity, Key: key, Message: fmt.Sprintf(format, args...),
	}})
}

// fromProject notes that the project's file decides about a key.
func (e *evaluation) fromProject(key string) { e.origins[key] = e.project.from[key].file }

// projectSets reports whether the project's file says anything about a key.
func (e *evaluation) projectSets(key string) bool {
	if e.project == nil {
		return false
	}
	_, ok := e.project.from[key]
	return ok
}

// without tells the project's author that the user's settings do not go along.
func (e *evaluation) without(key string, at position, severity Severity, format string, args ...any) {
	e.report(e.project.from[key].file, at, severity, key, format, args...)
}

// paths compiles the rules.
func (e *evaluation) paths() {
	user := make([][]grant, len(categories))
	var granted []grant
	if e.projectDir != "" {
		target := e.resolver.resolve(e.projectDir)
		e.policy.Project = target.path
		// Symlinks on the way to it are fine: the editor names the directory anew for each session.
		granted = append(granted, e.projectGrant())
	}
	if e.policy.Project != "" {
		e.git = findGit(e.resolver, e.host.home, e.policy.Project)
	}
	for _, dir := range e.git.outside {
		granted = append(granted, grant{
			path: dir, access: policy.Read, origin: policy.Origin{File: policy.OriginBuiltIn, Key: "the project's git repository"},
		})
	}
	for i, c := range categories {
		user[i] = e.grantsOf(&e.user, c, "")
	}
	for _, g := range slices.Concat(append(user, granted)...) {
		if g.access.Has(policy.Write) && !g.private {
			e.writable.add(g.path, policy.Write)
		}
	}
	granted = append(granted, e.refuseMovable(e.dotfiles())...)
	asked := map[string][]grant{}
	for i, c := range categories {
		list := e.refuseMovable(user[i])
		if e.projectSets(c.key) {
			asked[c.key] = e.refuseMovable(e.grantsOf(e.project, c, e.policy.Project))
			list = meetGrants(list, asked[c.key])
			e.merged.setList(c.key, texts(list))
			e.fromProject(c.key)
		}
		granted = append(granted, list...)
	}
	e.policy.Rules = e.mergeRules(granted)
	e.guardOutsideGit()
	e.policy.PrivateTerminals = e.privateTerminals()
	for key, list := range asked {
		e.explainDropped(key, list)
	}
}

// mergeRules makes one rule a path, with the origin of the grant that gives most.
func (e *evaluation) mergeRules(granted []grant) []policy.Rule {
	index := map[string]int{}
	strongest := []policy.Access{}
	rules := []policy.Rule{}
	for _, g := range granted {
		if g.private {
			e.policy.PrivateRuntimeDir = true
			continue
		}
		e.rules.add(g.path, g.access)
		i, ok := index[g.path]
		if !ok {
			index[g.path] = len(rules)
			rules = append(rules, policy.Rule{Path: g.path, Access: g.access, Origin: g.origin})
			strongest = append(strongest, g.access)
			continue
		}
		rules[i].Access |= g.access
		if len(g.access.Names()) > len(strongest[i].Names()) {
			rules[i].Origin, strongest[i] = g.origin, g.access
		}
	}
	slices.SortFunc(rules, func(a, b policy.Rule) int { return cmp.Compare(a.Path, b.Path) })
	return rules
}

// guardOutsideGit lets git write to a repository outside of the project: only where what is dangerous in it is protected.
func (e *evaluation) guardOutsideGit() {
	for i := range e.policy.Rules {
		rule := &e.policy.Rules[i]
		if !slices.Contains(e.git.outside, rule.Path) || e.rules.at(rule.Path).Has(policy.Write) {
			continue
		}
		rule.Access |= policy.Write
		rule.Guarded = policy.Write
	}
}

// privateTerminals reports whether the session may open terminals, and is not granted those of others beside: then it gets its own. A
// program that opens a terminal needs its other side, too, which lies in a directory with everybody's.
func (e *evaluation) privateTerminals() bool {
	if e.host.platform != "linux" {
		return false
	}
	return e.rules.at(e.resolver.resolve("/dev/ptmx").path).Has(policy.Write) && !e.rules.at("/dev/pts").Has(policy.Write)
}

// explainDropped says which of the project's grants have no effect, or not all of it. What the session gets in another way is not
// worth a remark.
func (e *evaluation) explainDropped(key string, asked []grant) {
	reached := map[string]bool{}
	for _, rule := range e.policy.Rules {
		for p := range upwards(rule.Path) {
			reached[p] = true
		}
	}
	for _, g := range asked {
		switch {
		case e.rules.at(g.path).Has(g.access &^ policy.Device):
		case reached[g.path]:
			e.without(key, g.at, SeverityInfo, "%s: only what your own settings grant below it counts", quote(g.text))
		default:
			e.without(key, g.at, SeverityWarning,
				"%s has no effect: a project's settings can only restrict; grant it in your own settings too", quote(g.text))
		}
	}
}

// texts lists what was written, each once, in order.
func texts(list []grant) []string {
	result := []string{}
	seen := map[string]bool{}
	for _, g := range list {
		if !seen[g.text] {
			seen[g.text] = true
			result = append(result, g.text)
		}
	}
	return result
}
