package settings

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/sandbox-sidecar/sandbox-sidecar/display"
	"github.com/sandbox-sidecar/sandbox-sidecar/fsguard"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/git"
)

// paths compiles the rules.
func (e *evaluation) paths() {
	user := make([][]grant, len(categories))
	var granted []grant
	if e.projectDir != "" {
		target := e.resolver.Resolve(e.projectDir)
		e.policy.Project = target.Path
		if errors.Is(target.Err, fsguard.ErrNoAnswer) {
			e.silent = e.policy.Project
		}
		// Symlinks on the way to it are fine: the editor names the directory
		// anew for each session.
		granted = append(granted, e.projectGrant())
	}
	if e.policy.Project != "" {
		e.git = git.Find(e.resolver, e.host.Home, e.policy.Project)
		e.silent = cmp.Or(e.silent, e.git.NoAnswer)
	}
	for _, path := range e.git.Skipped {
		e.refusals = append(e.refusals, fmt.Sprintf(
			"%s does not answer: what it makes git run from the project is not protected", display.Quote(path)))
	}
	for _, dir := range e.git.Outside {
		granted = append(granted, grant{
			path: dir, access: policy.Read, origin: policy.Origin{File: policy.OriginBuiltIn,
				Key: "the project's git repository"},
		})
	}
	for i, c := range categories {
		user[i] = e.grantsOf(&e.user, c)
	}
	tools := e.toolchainGrants()
	for _, g := range slices.Concat(append(user, granted, tools)...) {
		if g.access.Has(policy.Write) && !g.private {
			e.writable.add(g.path, policy.Write)
		}
	}
	granted = append(granted, e.refuseMovable(e.dotfiles())...)
	for i, c := range categories {
		list := e.refuseMovable(user[i])
		if e.projectSets(c.key) {
			asked := e.refuseMovable(e.grantsOf(e.project, c))
			e.asked = append(e.asked, asked...)
			list = meetGrants(list, asked)
			e.merged.SetList(c.key, texts(list))
			e.fromProject(c.key)
		}
		granted = append(granted, list...)
	}
	granted = append(granted, e.refuseMovable(tools)...)
	e.granted = granted
	e.policy.Rules = e.mergeRules(granted)
	e.guardOutsideGit()
	e.policy.PrivateTerminals = e.privateTerminals()
}

// mergeRules makes one rule a path, with the origin of the grant that gives
// most.
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

// guardOutsideGit lets git write to a repository outside of the project: only
// where what is dangerous in it is protected.
func (e *evaluation) guardOutsideGit() {
	for i := range e.policy.Rules {
		rule := &e.policy.Rules[i]
		if !slices.Contains(e.git.Outside, rule.Path) || e.rules.at(rule.Path).Has(policy.Write) {
			continue
		}
		rule.Access |= policy.Write
		rule.Guarded = policy.Write
	}
}

// privateTerminals reports whether the session may open terminals, and is not
// granted those of others beside: then it gets its own. A program that opens a
// terminal needs its other side, too, which lies in a directory with
// everybody's.
func (e *evaluation) privateTerminals() bool {
	if e.host.Platform != "linux" {
		return false
	}
	return e.rules.at(e.resolver.Resolve("/dev/ptmx").Path).Has(policy.Write) && !e.rules.at("/dev/pts").Has(policy.Write)
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
