package compile

import (
	"cmp"
	"maps"
	"path/filepath"
	"slices"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/document"
)

// grantSet are the grants of an evaluation and the rules that they make.
type grantSet struct {
	granted  []grant         // what the rules were made of
	lasting  []grant         // those without the project's file, and of a trusted one, too
	asked    []grant         // what an untrusted project's file grants for its part
	rejected []rejectedGrant // those that would undo the sandbox
	create   []string        // directories that a session needs and cannot make
	refusals []string        // messages on built-in grants that do not count

	writable cover // all grants for writing, dropped ones included
	cover    cover // the grants that count
	rules    []policy.Rule

	copies    []policy.Copy // sorted by path
	parts     []copied      // of hidden files, as far as they count
	temporary []policy.Temporary
	hidden    []policy.Hidden
	// unclear is an entry of hidden_paths that could not be understood; nil if
	// there is none.
	unclear *document.FileDiagnostic
	// outside is what the grants give for what is outside of sessions. An
	// untrusted project's file has no part in it.
	outside outside

	privateTerminals, privateRuntimeDir bool
}

// resolveGrants turns the requests of all layers into grants and rules.
func resolveGrants(
	view fsView, l layers, p *project, toolchains []chosen, environment policy.Environment,
	alone *evaluation, r *reporter,
) grantSet {
	set := grantSet{writable: cover{}}
	if alone != nil {
		maps.Copy(set.writable, alone.writable)
	}
	resolved := func(s *settings, c category) []grant {
		list, rejected := resolveRequests(view, *p, requestsOf(s, c, view.host.Platform), r)
		set.rejected = append(set.rejected, rejected...)
		return list
	}
	steady := func(list []grant) []grant {
		rest, refusals := dropMovable(list, set.writable, r)
		for _, refusal := range refusals {
			if !slices.Contains(set.refusals, refusal) {
				set.refusals = append(set.refusals, refusal)
			}
		}
		return rest
	}
	user := make([][]grant, len(categories))
	for i, c := range categories {
		user[i] = resolved(&l.user, c)
	}
	var others []grant
	if l.others != nil {
		others = listsOf(view, l.others, *p)
	}
	view.moving.look(view, l, *p, toolchains, slices.Concat(user...), others, alone)
	tools, create := toolchainGrants(view, toolchains, r)
	set.writable.addWriters(slices.Concat(append(slices.Clone(user), p.grants, tools)...))
	if l.others != nil {
		set.writable.addWriters(grantsOf(view, l.others, *p))
	}
	p.openParent(view, l, set.writable, coverOf(append(slices.Concat(user...), tools...)))
	home, _ := resolveRequests(view, *p, view.dotfiles(), r)
	plain, copies := view.settingsOfOthers(set.writable)
	set.granted, set.create = slices.Concat(p.grants, steady(append(home, plain...))), create
	for i, list := range user {
		user[i] = steady(list)
	}
	tools = steady(tools)
	// Nothing is made where a symlink of a session's would have it.
	set.create = slices.DeleteFunc(slices.Clone(create), func(dir string) bool {
		return !slices.ContainsFunc(tools, func(g grant) bool { return policy.Contains(dir, g.path) })
	})
	set.closeOff(view, l, *p, slices.Concat(append(slices.Clone(user), set.granted, tools)...), alone, r)
	for i, c := range categories {
		list := user[i]
		if l.projectSets(c.key) {
			asked := steady(resolved(l.project, c))
			set.asked = append(set.asked, asked...)
			list = meetGrants(list, asked, set.outside)
			l.tightened.values.SetList(c.key, texts(list))
			l.decide(c.key)
		}
		set.granted = append(set.granted, list...)
	}
	set.granted = append(set.granted, tools...)
	given := outsideOf(set.granted, set.temporary, set.hidden)
	add := func(list []grant) { // mostly there is nothing to add
		if list = steady(list); len(list) > 0 {
			set.granted = append(set.granted, list...)
			given = outsideOf(set.granted, set.temporary, set.hidden)
		}
	}
	certificates, refusals := certificateGrants(view, environment, given)
	add(certificates)
	set.refusals = append(set.refusals, refusals...)
	add(namedFiles(view, given))
	set.cover = given.cover
	set.rules = allowGuarded(given.policy.Rules, given, *p)
	set.temporary = slices.DeleteFunc(slices.Clone(set.temporary), func(t policy.Temporary) bool {
		return set.cover.at(t.Path) == 0 // the project's file has taken it away
	})
	set.copies = set.copiesOf(slices.Concat(copies, set.parts), r)
	set.privateTerminals = privateTerminals(view, set.cover)
	set.privateRuntimeDir = slices.ContainsFunc(set.granted, func(g grant) bool { return g.private })
	return set
}

// copiesOf are the files of which sessions read a part, with a warning about each:
// what reads the file goes on without the rest. Whoever grants a file as a whole
// means that, and whoever hides it, too. Programs outside obey such a file, so it
// does not count if some session may write it.
func (set *grantSet) copiesOf(list []copied, r *reporter) []policy.Copy {
	if len(list) == 0 {
		return nil
	}
	var copies []policy.Copy
	given := outsideOf(set.granted, set.temporary, set.hidden)
	decided := map[string]bool{} // what needs no wider grant comes first
	for _, c := range list {
		if decided[c.path] || c.wider && !set.cover.at(c.path).Has(policy.Read) {
			continue
		}
		decided[c.path] = true
		hidden := slices.ContainsFunc(set.hidden, func(h policy.Hidden) bool {
			return policy.Contains(h.Path, c.path) && (h.Path != c.path || h.Origin.File != policy.OriginBuiltIn)
		})
		own := slices.ContainsFunc(set.temporary, func(t policy.Temporary) bool {
			return policy.Contains(t.Path, c.path)
		})
		if hidden || own || given.at(c.path).Has(policy.Read) {
			continue
		}
		steady, _ := dropMovable([]grant{c.grant}, set.writable, r)
		if c.text == "" || len(steady) == 0 || set.writable.at(c.path).Has(policy.Write) {
			c.say(r, c.lost, document.SeverityWarning)
			continue
		}
		c.say(r, c.told, c.severity)
		copies = append(copies, policy.Copy{Path: c.path, Text: c.text, Origin: c.origin})
	}
	slices.SortFunc(copies, func(a, b policy.Copy) int { return cmp.Compare(a.Path, b.Path) })
	return slices.CompactFunc(copies, func(a, b policy.Copy) bool { return a.Path == b.Path })
}

// grantsOf resolves what one layer grants, its toolchains included.
func grantsOf(view fsView, s *settings, p project) []grant {
	tools, _ := toolchainGrants(view, toolchainsOf(s, &reporter{}), &reporter{})
	return append(listsOf(view, s, p), tools...)
}

// listsOf resolves the lists of paths of one layer.
func listsOf(view fsView, s *settings, p project) []grant {
	var list []grant
	for _, c := range categories {
		grants, _ := resolveRequests(view, p, requestsOf(s, c, view.host.Platform), &reporter{})
		list = append(list, grants...)
	}
	return list
}

// closeOff decides which parts of the grants sessions do not see as they are
// outside. own are the grants without an untrusted project's file.
func (set *grantSet) closeOff(
	view fsView, l layers, p project, own []grant, alone *evaluation, r *reporter,
) {
	set.temporary = []policy.Temporary{}
	if private, forced := l.isStrict(temporaryKey); private {
		set.temporary = temporaryOf(view, own, forced)
	}
	var notes []string
	set.hidden, set.parts, notes, set.unclear = chooseHidden(view, l, p, own, set.writable, alone, r)
	set.refusals = append(set.refusals, notes...)
	set.outside, set.lasting = outsideOf(own, set.temporary, set.hidden), own
	if alone != nil {
		set.lasting = slices.Concat(own, alone.lasting)
	}
}

func outsideOf(granted []grant, temporary []policy.Temporary, hidden []policy.Hidden) outside {
	p := &policy.Policy{Rules: mergeRules(granted), Temporary: temporary, Hidden: hidden}
	return outside{cover: coverOf(granted), policy: p, index: policy.NewIndex(p)}
}

// coverOf is what grants give together.
func coverOf(granted []grant) cover {
	c := cover{}
	for _, g := range granted {
		if !g.private {
			c.add(g.path, g.access)
		}
	}
	return c
}

// mergeRules makes one rule a path, with the origin of the grant that gives
// most.
func mergeRules(granted []grant) []policy.Rule {
	index := map[string]int{}
	strongest := []policy.Access{}
	rules := make([]policy.Rule, 0, len(granted))
	for _, g := range granted {
		if g.private {
			continue
		}
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

// allowGuarded lets git write to a repository outside of the project, but only
// if the machine can protect what is dangerous in it. See
// docs/design/git-repositories.md.
func allowGuarded(rules []policy.Rule, granted outside, p project) []policy.Rule {
	list := slices.Clone(rules)
	for i, rule := range list {
		own := slices.Contains(p.git.Outside, rule.Path) || p.parent != nil && p.parent.Dir == rule.Path
		if own && !granted.at(rule.Path).Has(policy.Write) {
			list[i].Access |= policy.Write
			list[i].Guarded = policy.Write
		}
	}
	return list
}

// privateTerminals reports whether the session gets terminals of its own: it may
// open terminals and is not granted those of other programs. A program that
// opens a terminal needs its other side, which lies in /dev/pts with everybody's.
func privateTerminals(view fsView, granted cover) bool {
	if view.host.Platform != "linux" {
		return false
	}
	return granted.at(view.Resolve("/dev/ptmx").Path).Has(policy.Write) && !granted.at("/dev/pts").Has(policy.Write)
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

// cover maps paths to the access that is granted there and below. A lookup
// climbs from the path to the root, so that ten thousand grants take ten
// thousand short climbs instead of a hundred million comparisons.
type cover map[string]policy.Access

func (c cover) add(path string, access policy.Access) { c[path] |= access }

// addWriters adds the grants for writing.
func (c cover) addWriters(list []grant) {
	for _, g := range list {
		if g.access.Has(policy.Write) && !g.private {
			c.add(g.path, policy.Write)
		}
	}
}

// at is all access to the path: grants on the way to it add up.
func (c cover) at(path string) policy.Access {
	var access policy.Access
	for p := range upwards(path) {
		access |= c[p]
	}
	return access
}

// upwards yields the path and its parents up to the root.
func upwards(path string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for {
			parent := filepath.Dir(path)
			if !yield(path) || path == parent {
				return
			}
			path = parent
		}
	}
}

// meetGrants returns what both lists grant. It compares resolved paths only:
// the text of a path below a granted directory does not say where a symlink in
// it leads.
// A project's entry never opens what sessions do not see without it.
func meetGrants(user, project []grant, seen outside) []grant {
	byUser, byProject := cover{}, cover{}
	for _, g := range user {
		// A private runtime directory is not a grant of the shared one.
		if !g.private {
			byUser.add(g.path, g.access)
		}
	}
	for _, g := range project {
		byProject.add(g.path, g.access)
	}
	var kept []grant
	for _, g := range user {
		common := byProject.at(g.path)
		if g.private {
			if common != 0 {
				kept = append(kept, g)
			}
			continue
		}
		if g.access &= common; g.access != 0 {
			kept = append(kept, g)
		}
	}
	for _, g := range project {
		// Equal paths are the user's and already in the list.
		if _, equal := byUser[g.path]; equal {
			continue
		}
		if g.access &= byUser.at(g.path) & seen.at(g.path); g.access != 0 {
			kept = append(kept, g)
		}
	}
	return kept
}

// outside is what grants give for what is at a path outside of sessions.
type outside struct {
	cover  cover
	policy *policy.Policy // has the rules, Temporary and Hidden
	index  *policy.Index  // of policy
}

// at is all access to the path; nothing if sessions see something else there.
func (o outside) at(path string) policy.Access {
	within := slices.ContainsFunc(o.policy.Temporary, func(t policy.Temporary) bool {
		return policy.Contains(t.Path, path)
	})
	if _, hidden := o.index.HiddenAt(path); within || hidden {
		return o.index.Outside(path)
	}
	return o.cover.at(path)
}
