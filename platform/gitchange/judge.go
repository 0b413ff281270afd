// Package gitchange decides whether a session may change the configuration of
// a git repository, by what the change means.
//
// See docs/design/git-config.md.
package gitchange

import (
	"slices"
	"strings"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/gitconfig"
)

// Facts are what the decision depends on beside the two files. A function that
// is nil answers no.
type Facts struct {
	// Added reports whether a session of this sidecar has added an entry.
	Added func(gitconfig.Entry) bool
	// Held returns the settings that a branch of that name had, if sessions of this
	// sidecar have renamed it, or another to it; see Verdict.Moved.
	Held func(branch string) (settings []gitconfig.Entry, held bool)
	// Unwritable reports whether a local repository exists at an absolute path,
	// and no session can write there.
	Unwritable func(path string) bool
}

// Verdict is what a change means.
type Verdict struct {
	// Changed are the keys whose values differ, in the order of the files.
	Changed []string
	// Added are the entries that only the new file has.
	Added []gitconfig.Entry
	// Moved are the branches that got another name, and their new names, with
	// their settings: those that sessions have not added. What there is under
	// such a name later must have the same settings, or pushes go elsewhere.
	Moved map[string][]gitconfig.Entry
	// Refused are the changes that a session may not make. If there are none,
	// the change is accepted.
	Refused []Refusal
}

// maxChanged bounds the settings that change at once, and the values that are
// added. No command of git changes more, and each costs more than to be read.
const maxChanged = 256

// Judge compares the entries of a file before and after a change.
func Judge(before, after []gitconfig.Entry, facts Facts) Verdict {
	c := change{before: valuesOf(before), after: valuesOf(after), added: map[string][]gitconfig.Entry{}, facts: facts}
	var v Verdict
	changed := map[string]bool{}
	for _, e := range slices.Concat(after, before) {
		if !changed[e.Key] && !slices.Equal(c.before[e.Key], c.after[e.Key]) {
			changed[e.Key] = true
			v.Changed = append(v.Changed, e.Key)
		}
	}
	for _, name := range v.Changed {
		c.added[name] = without(c.after[name], c.before[name])
		v.Added = append(v.Added, c.added[name]...)
	}
	if max(len(v.Changed), len(v.Added)) > maxChanged {
		v.Refused = []Refusal{{Line: "settings: more have changed than one command changes"}}
		return v
	}
	c.groups = groupsOf(before)
	moved := c.movedBranches(before, after)
	v.Moved = c.foreign(before, moved)
	for _, name := range v.Changed {
		k := parseKey(name)
		if k.section == "branch" && k.grouped && moved[k.group] != "" {
			continue
		}
		if why := c.refuse(k); why != "" {
			v.Refused = append(v.Refused, c.refusal(k, why))
		}
	}
	// The order of all others matters: the last value counts, and what a file
	// includes counts where it is included.
	same := func(e gitconfig.Entry) bool { return changed[e.Key] }
	rest := slices.DeleteFunc(slices.Clone(before), same)
	if restAfter := slices.DeleteFunc(slices.Clone(after), same); !slices.Equal(rest, restAfter) {
		i := 0
		for rest[i] == restAfter[i] {
			i++
		}
		moved := c.refusal(parseKey(restAfter[i].Key), "its place among the others has changed")
		moved.Change = ""
		v.Refused = append(v.Refused, moved)
	}
	return v
}

// change is one change of a file: the entries of each key, in their order.
type change struct {
	before, after map[string][]gitconfig.Entry
	// added are the values that a changed key gets, beside those that it has.
	added map[string][]gitconfig.Entry
	// groups are the entries before, by section and group.
	groups map[[2]string][]gitconfig.Entry
	facts  Facts
}

// without returns the entries of a list that another one does not have.
func without(list, other []gitconfig.Entry) []gitconfig.Entry {
	has := make(map[gitconfig.Entry]bool, len(other))
	for _, e := range other {
		has[e] = true
	}
	return slices.DeleteFunc(slices.Clone(list), func(e gitconfig.Entry) bool { return has[e] })
}

// groupsOf are the entries of each group, such as all of remote.origin.
func groupsOf(entries []gitconfig.Entry) map[[2]string][]gitconfig.Entry {
	groups := map[[2]string][]gitconfig.Entry{}
	for _, e := range entries {
		if k := parseKey(e.Key); k.grouped {
			of := [2]string{k.section, k.group}
			groups[of] = append(groups[of], e)
		}
	}
	return groups
}

func valuesOf(entries []gitconfig.Entry) map[string][]gitconfig.Entry {
	values := map[string][]gitconfig.Entry{}
	for _, e := range entries {
		values[e.Key] = append(values[e.Key], e)
	}
	return values
}

// key is a key in its parts, such as branch, main and remote. The group is what
// git calls a subsection.
type key struct {
	text                 string
	section, group, name string
	grouped              bool
}

func parseKey(text string) key {
	k := key{text: text}
	var rest string
	k.section, rest, _ = strings.Cut(text, ".")
	last := strings.LastIndexByte(rest, '.')
	k.name, k.grouped = rest[last+1:], last >= 0
	if k.grouped {
		k.group = rest[:last]
	}
	return k
}

// ours reports whether sessions of this sidecar have added all entries, of which
// there may be none.
func (c change) ours(entries []gitconfig.Entry) bool {
	return !slices.ContainsFunc(entries, func(e gitconfig.Entry) bool {
		return c.facts.Added == nil || !c.facts.Added(e)
	})
}

// movedBranches are branches whose settings have got the name of another branch
// as they were, which had none: "git branch -m" does that.
// The new name is the value of the old one, and the old one that of the new.
func (c change) movedBranches(before, after []gitconfig.Entry) map[string]string {
	was, is := branches(before), branches(after)
	var fresh []string
	for to := range is {
		if len(was[to]) == 0 && isName(to) {
			fresh = append(fresh, to)
		}
	}
	moved := map[string]string{}
	for from, settings := range was {
		if len(is[from]) > 0 {
			continue
		}
		for _, to := range fresh {
			if moved[to] == "" && moved[from] == "" && slices.Equal(settings, is[to]) && c.mayGet(to, settings) {
				moved[from], moved[to] = to, from
			}
		}
	}
	return moved
}

// mayGet reports whether a branch may get settings: if it had others before,
// under that name, it may not.
func (c change) mayGet(branch string, settings []gitconfig.Entry) bool {
	was, held := c.held(branch)
	return !held || len(without(settings, was)) == 0
}

func (c change) held(branch string) ([]gitconfig.Entry, bool) {
	if c.facts.Held == nil {
		return nil, false
	}
	return c.facts.Held(branch)
}

// foreign is Verdict.Moved.
func (c change) foreign(before []gitconfig.Entry, moved map[string]string) map[string][]gitconfig.Entry {
	var list map[string][]gitconfig.Entry
	was := branches(before)
	for from, to := range moved {
		settings := was[from]
		if _, held := c.held(from); len(settings) == 0 || !held && c.ours(c.groups[[2]string{"branch", from}]) {
			continue
		}
		if list == nil {
			list = map[string][]gitconfig.Entry{}
		}
		list[from], list[to] = settings, settings
	}
	return list
}

// branches are the entries of each branch, with only the name as the key.
func branches(entries []gitconfig.Entry) map[string][]gitconfig.Entry {
	list := map[string][]gitconfig.Entry{}
	for _, e := range entries {
		if k := parseKey(e.Key); k.section == "branch" && k.grouped {
			list[k.group] = append(list[k.group], gitconfig.Entry{Key: k.name, Value: e.Value, Valued: e.Valued})
		}
	}
	return list
}
