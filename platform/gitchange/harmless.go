package gitchange

import (
	"slices"
	"strconv"
	"strings"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/gitconfig"
)

// Why a change is refused although its key is on the list.
const (
	whySet     = "it was set before, outside the sandbox"
	whyPush    = "your next push would go elsewhere"
	whyValue   = "%s is not accepted"
	whyName    = "git could read %s as something else"
	whyAddress = "%s is not https, ssh or git"
	whyLocal   = "a session could write to %s"
)

// simple are the keys without a group that sessions may set, change and remove,
// and what their values may be.
var simple = map[string]func(gitconfig.Entry) bool{
	"user.name":                   isText,
	"user.email":                  isText,
	"pull.rebase":                 oneOf("merges", "m", "interactive", "i"),
	"pull.ff":                     oneOf("only"),
	"push.default":                oneOf("nothing", "current", "upstream", "tracking", "simple", "matching"),
	"push.autosetupremote":        oneOf(),
	"push.followtags":             oneOf(),
	"init.defaultbranch":          func(e gitconfig.Entry) bool { return e.Valued && isName(e.Value) },
	"gc.auto":                     isNumber,
	"gc.autodetach":               oneOf(),
	"gc.pruneexpire":              isDate,
	"gc.reflogexpire":             isDate,
	"gc.reflogexpireunreachable":  isDate,
	"core.filemode":               oneOf(),
	"core.ignorecase":             oneOf(),
	"core.precomposeunicode":      oneOf(),
	"core.logallrefupdates":       oneOf("always"),
	"lfs.repositoryformatversion": isNumber,
}

// users reports whether sessions only add a simple key: what is pushed, and what
// git deletes, stays as somebody has set it outside. core.filemode changes: "git
// init" in a repository sets it.
func users(k key) bool { return k.section == "push" || k.section == "gc" }

// filters are what "git lfs install" writes.
var filters = map[string][]string{
	"clean":    {"git-lfs clean -- %f"},
	"smudge":   {"git-lfs smudge -- %f", "git-lfs smudge --skip -- %f"},
	"process":  {"git-lfs filter-process", "git-lfs filter-process --skip"},
	"required": {"true"},
}

// refuse says why a session may not change the values of a key; "" if it may.
// The text may have one %s, for the value.
func (c change) refuse(k key) string {
	added := c.added[k.text]
	if valid, is := simple[k.text]; is {
		if i := slices.IndexFunc(added, func(e gitconfig.Entry) bool { return !valid(e) }); i >= 0 {
			return whyValue
		}
		if users(k) && !c.ours(c.before[k.text]) {
			return whySet
		}
		return ""
	}
	switch {
	case k.text == "core.bare":
		return c.refuseBare(k)
	case !k.grouped:
	case k.section == "branch":
		return c.refuseBranch(k, added)
	case k.section == "remote":
		return c.refuseRemote(k, added)
	case k.section == "submodule":
		return c.refuseSubmodule(k, added)
	case k.section == "lfs" && k.name == "locksverify":
		return valueOf(added, oneOf())
	case k.section == "filter" && k.group == "lfs" && filters[k.name] != nil:
		known := func(e gitconfig.Entry) bool { return e.Valued && slices.Contains(filters[k.name], e.Value) }
		if before := c.before[k.text]; len(c.after[k.text]) == 0 && !c.ours(before) ||
			slices.ContainsFunc(before, func(e gitconfig.Entry) bool { return !known(e) }) {
			return whySet
		}
		if valueOf(added, known) == "" {
			return ""
		}
	}
	return meaning(k)
}

// refuseBare accepts that a repository has a working tree. In a repository
// without one, git looks for relative hooks in the current directory.
func (c change) refuseBare(k key) string {
	for _, e := range c.added[k.text] {
		if !e.Valued || !strings.EqualFold(e.Value, "false") {
			return "git would look for hooks elsewhere"
		}
	}
	if len(c.before[k.text]) > 0 {
		return whySet
	}
	return ""
}

func (c change) refuseBranch(k key, added []gitconfig.Entry) string {
	valid := map[string]func(gitconfig.Entry) bool{
		"remote":      func(e gitconfig.Entry) bool { return e.Valued && (e.Value == "." || c.hasRemote(e.Value)) },
		"merge":       func(e gitconfig.Entry) bool { return e.Valued && isRef(e.Value) },
		"rebase":      oneOf("merges", "m", "interactive", "i"),
		"description": isProse,
	}[k.name]
	switch {
	case valid == nil:
		return meaning(k)
	case !isName(k.group):
		return whyName
	case !c.ours(c.before[k.text]), !c.mayGet(k.group, settingsOf(k, added)):
		if k.name == "remote" || k.name == "merge" {
			return whyPush
		}
		return whySet
	case k.name == "remote" && valueOf(added, valid) != "":
		return "there is no remote %s"
	}
	return valueOf(added, valid)
}

// settingsOf are values of a branch's key, as Facts.Held has them.
func settingsOf(k key, values []gitconfig.Entry) []gitconfig.Entry {
	list := slices.Clone(values)
	for i := range list {
		list[i].Key = k.name
	}
	return list
}

// hasRemote reports whether the file has a remote of that name. A name that is
// none is an address to git.
func (c change) hasRemote(name string) bool {
	return isName(name) && len(c.after["remote."+name+".url"]) > 0
}

func (c change) refuseRemote(k key, added []gitconfig.Entry) string {
	valid := map[string]func(gitconfig.Entry) bool{
		"url":    nil, // see address
		"fetch":  func(e gitconfig.Entry) bool { return e.Valued && isFetch(k.group, e.Value) },
		"tagopt": func(e gitconfig.Entry) bool { return e.Valued && (e.Value == "--tags" || e.Value == "--no-tags") },
		"prune":  oneOf(),
	}
	test, known := valid[k.name]
	switch {
	case !known:
		return meaning(k)
	case !c.ours(c.groups[[2]string{k.section, k.group}]):
		if k.name == "url" {
			return whyPush
		}
		return whySet
	case !isRemoteName(k.group):
		return whyName
	case k.name == "url":
		return c.addresses(added)
	}
	return valueOf(added, test)
}

func (c change) refuseSubmodule(k key, added []gitconfig.Entry) string {
	switch {
	case k.name != "active" && k.name != "url":
		return meaning(k)
	case !isSubmoduleName(k.group):
		return whyName
	case k.name == "active":
		return valueOf(added, oneOf())
	case !c.ours(c.before[k.text]):
		return whyPush
	}
	return c.addresses(added)
}

// addresses refuses addresses at which git could run something.
func (c change) addresses(added []gitconfig.Entry) string {
	for _, e := range added {
		path, local, ok := address(e.Value)
		switch {
		case !e.Valued || !ok:
			return whyAddress
		case local && (c.facts.Unwritable == nil || !c.facts.Unwritable(path)):
			return whyLocal
		}
	}
	return ""
}

// valueOf refuses values that do not pass a test.
func valueOf(added []gitconfig.Entry, valid func(gitconfig.Entry) bool) string {
	if slices.ContainsFunc(added, func(e gitconfig.Entry) bool { return !valid(e) }) {
		return whyValue
	}
	return ""
}

// oneOf accepts what git reads as a boolean, and some words.
func oneOf(words ...string) func(gitconfig.Entry) bool {
	words = append(words, "true", "yes", "on", "1", "false", "no", "off", "0")
	return func(e gitconfig.Entry) bool { return !e.Valued || slices.Contains(words, strings.ToLower(e.Value)) }
}

func isNumber(e gitconfig.Entry) bool {
	number, err := strconv.Atoi(e.Value)
	return err == nil && number >= 0
}

// isDate accepts dates such as "2.weeks.ago", "never" and "now".
func isDate(e gitconfig.Entry) bool {
	const others = " .:+-/"
	return e.Valued && e.Value != "" && len(e.Value) <= 64 && !strings.HasPrefix(e.Value, "-") &&
		strings.IndexFunc(e.Value, func(r rune) bool {
			return !isAlphanumeric(r) && !strings.ContainsRune(others, r)
		}) < 0
}

func isAlphanumeric(r rune) bool {
	return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9'
}
