package gitchange

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/sandbox-sidecar/sandbox-sidecar/display"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/gitconfig"
)

// Refusal is a setting that a session may not change.
type Refusal struct {
	// Key is the setting, spelled as git's documentation does if it is known.
	Key string
	// Value is the new value; "" if there is none.
	Value string
	// Line says in one line of at most MaxLine characters which setting it is
	// and what git would do. It can be shown as it is.
	Line string
	// Whole is Line for a question, with the whole setting and all its new values,
	// escaped. It is "" if that has more than MaxWhole characters or a password:
	// nobody can be asked then.
	Whole string
	// Change identifies the setting and its values; "" if it cannot be told apart
	// from the rest.
	Change string
	// Command sets the same; "" if it cannot be shown as one short line.
	Command string
}

// MaxLine bounds Refusal.Line. A sentence around it has at most 100 characters.
const MaxLine = 72

// MaxWhole bounds Refusal.Whole. Editors cut a question that has much more than
// 100 characters.
const MaxWhole = 80

const (
	maxKey     = 30
	maxCommand = 60
)

// runs are the settings that name a program, and what git would do with it. A *
// in the place of the group stands for any, and at the end for any name.
var runs = []struct{ key, why string }{
	{"core.hooksPath", "git would run the hooks in %s"},
	{"core.fsmonitor", "git would run %s at each status"},
	{"core.sshCommand", "git would run %s to connect"},
	{"core.gitProxy", "git would run %s to connect"},
	{"core.editor", "git would run %s as the editor"},
	{"core.pager", "git would run %s as the pager"},
	{"core.askPass", "git would run %s for passwords"},
	{"core.alternateRefsCommand", "git would run %s"},
	{"core.worktree", "git would work in %s"},
	{"core.attributesFile", "git would take filters from %s"},
	{"core.excludesFile", "git would ignore what %s lists"},
	{"alias.*", "git would run %s"},
	{"alias.*.command", "git would run %s"},
	{"include.path", "git would read settings from %s"},
	{"includeIf.*.path", "git would read settings from %s"},
	{"credential.*", "git would ask %s for passwords"},
	{"credential.*.*", "git would ask %s for passwords"},
	{"filter.*.*", "git would run %s on files"},
	{"diff.external", "git would run %s to compare"},
	{"diff.*.command", "git would run %s to compare"},
	{"diff.*.textconv", "git would run %s to compare"},
	{"diff.*", "it decides how git compares"},
	{"diff.*.*", "it decides how git compares"},
	{"difftool.*.*", "git would run %s to compare"},
	{"merge.*.driver", "git would run %s to merge"},
	{"mergetool.*.*", "git would run %s to merge"},
	{"interactive.diffFilter", "git would run %s"},
	{"pager.*", "git would run %s as the pager"},
	{"url.*.*", "git would go to other addresses"},
	{"protocol.*", "git would accept other addresses"},
	{"protocol.*.*", "git would accept other addresses"},
	{"submodule.*.update", "git would run %s"},
	{"gpg.program", "git would run %s to sign"},
	{"gpg.*.*", "git would run %s to sign"},
	{"sequence.editor", "git would run %s as the editor"},
	{"uploadpack.*", "git would run %s for others"},
	{"uploadpack.*.*", "git would run %s for others"},
	{"receive.*", "it decides what a push may change"},
	{"remote.*.uploadpack", "git would run %s to fetch"},
	{"remote.*.receivepack", "git would run %s to push"},
	{"remote.*.proxy", "git would connect through %s"},
	{"remote.*.vcs", "git would run a helper for %s"},
	{"remote.*.pushurl", whyPush},
	{"remote.*.push", whyPush},
	{"remote.*.mirror", "git would overwrite every branch"},
	{"remote.pushDefault", whyPush},
	{"branch.*.pushRemote", whyPush},
	{"extensions.*", "it changes how git reads the repository"},
	{"hook.*.*", "git would run %s as a hook"},
	{"gc.recentObjectsHook", "git would run %s"},
	{"init.templateDir", "git would copy hooks from %s"},
	{"http.*", "it decides how git connects"},
	{"http.*.*", "it decides how git connects"},
	{"lfs.extension.*.*", "git-lfs would run %s"},
	{"lfs.*.*", "git-lfs may run or connect to %s"},
	{"lfs.*", "git-lfs may run or connect to %s"},
	{"sendemail.*", "git would run or send to %s"},
	{"sendemail.*.*", "git would run or send to %s"},
	{"tar.*.command", "git would run %s"},
	{"trailer.*.*", "git would run %s"},
	{"browser.*.*", "git would run %s"},
	{"man.*.*", "git would run %s"},
	{"imap.tunnel", "git would run %s"},
	{"trace2.*", "git would write to %s"},
}

// Programs are the settings whose value git, or a part of it, would run: a * in the
// place of the group stands for any, and at the end for any name.
func Programs() (keys []string) {
	for _, row := range runs {
		if strings.Contains(row.why, "would run %s") {
			keys = append(keys, row.key)
		}
	}
	return keys
}

// whyUnlisted is about all settings that are not known.
const whyUnlisted = "it is not among the harmless ones"

// find returns the row of a key.
func find(k key) (spelled, why string) {
	for _, row := range runs {
		want := parseKey(strings.ToLower(row.key))
		if want.section != k.section || want.grouped != k.grouped || want.name != "*" && want.name != k.name {
			continue
		}
		group, below := strings.CutSuffix(want.group, ".*") // extension.*
		switch {
		case !k.grouped, want.group == "*", below && strings.HasPrefix(k.group, group+"."):
			return row.key, row.why
		}
	}
	return "", ""
}

// meaning says what git would do with a setting.
func meaning(k key) string {
	if _, why := find(k); why != "" {
		return why
	}
	return whyUnlisted
}

// spelling is a key as git's documentation writes it, with the group as it is.
func spelling(k key) string {
	row, _ := find(k)
	if row == "" || strings.HasSuffix(row, "*") {
		return k.text
	}
	section, rest, _ := strings.Cut(row, ".")
	name := rest[strings.LastIndexByte(rest, '.')+1:]
	if !k.grouped {
		return section + "." + name
	}
	return section + "." + k.group + "." + name
}

func (c change) refusal(k key, why string) Refusal {
	r := Refusal{Key: spelling(k), Change: identify(k, c.after[k.text]), Whole: c.whole(k, why)}
	added := c.added[k.text]
	switch {
	case len(added) > 0:
		r.Value = withoutPassword(added[len(added)-1].Value)
	case len(c.after[k.text]) < len(c.before[k.text]) && why != whyPush:
		why = whySet // it was removed
	}
	shown := display.Quote(r.Key)
	if len(added) == 1 && added[0].Valued && len(c.after[k.text]) == 1 && isBare(r.Key) && isBare(r.Value) {
		if command := "git config " + r.Key + " " + r.Value; len(command) <= maxCommand {
			r.Command = command
		}
	}
	if len([]rune(shown)) > maxKey {
		shown = display.Shorten(shown, maxKey)
	}
	if strings.Contains(why, "%s") {
		subject := r.Value
		if why == whyName {
			subject = k.group
		}
		room := MaxLine - len([]rune(shown)) - len(": ") - len([]rune(why)) + len("%s")
		why = fmt.Sprintf(why, display.Shorten(display.Quote(subject), room))
	}
	r.Line = display.Shorten(shown+": "+why, MaxLine)
	return r
}

// whole is Refusal.Whole.
func (c change) whole(k key, why string) string {
	name, after := spelling(k), c.after[k.text]
	size := len(name)
	var values []string
	for _, e := range after {
		if size += len(e.Value); size > MaxWhole || hasPassword(e.Value) {
			return ""
		}
		value := "no value"
		if e.Valued {
			value = display.QuoteWhole(e.Value)
		}
		values = append(values, value)
	}
	if size > MaxWhole {
		return ""
	}
	shown := strings.Join(values, ", ")
	line := display.QuoteWhole(name)
	switch {
	case len(after) == 0:
		line += " removed: " + whySet
	case hasPassword(k.group):
		return ""
	case k.section == "url" && k.name == "insteadof":
		line = fmt.Sprintf(`"insteadOf": git would go to %s instead of %s`, display.QuoteWhole(k.group), shown)
	case k.section == "url" && k.name == "pushinsteadof":
		line = fmt.Sprintf(`"pushInsteadOf": git would push to %s instead of %s`, display.QuoteWhole(k.group), shown)
	case why == whyName:
		line += " = " + shown + ": " + strings.ReplaceAll(why, "%s", display.QuoteWhole(k.group))
	case strings.Contains(why, "%s") && len(after) == 1:
		line += ": " + strings.ReplaceAll(why, "%s", shown)
	default:
		line += " = " + shown + ": " + strings.ReplaceAll(why, "%s", "that")
	}
	if utf8.RuneCountInString(line) > MaxWhole {
		return ""
	}
	return line
}

// hasPassword reports whether a text has an address with a password.
func hasPassword(text string) bool {
	_, rest, _ := strings.Cut(text, "://")
	user, _, at := strings.Cut(rest, "@")
	return at && strings.Contains(user, ":")
}

// identify is a hash of a setting and its values.
func identify(k key, values []gitconfig.Entry) string {
	sum := sha256.New()
	fmt.Fprintf(sum, "%q", k.text)
	for _, e := range values {
		fmt.Fprintf(sum, " %t %q", e.Valued, e.Value)
	}
	return string(sum.Sum(nil))
}

// withoutPassword removes the user's name and password from an address.
func withoutPassword(text string) string {
	scheme, rest, full := strings.Cut(text, "://")
	host, path, _ := strings.Cut(rest, "/")
	if at := strings.LastIndexByte(host, '@'); full && at >= 0 {
		return scheme + "://" + host[at+1:] + "/" + path
	}
	return text
}

// isBare accepts a word that no shell changes, and that no program takes for an
// option.
func isBare(text string) bool {
	return text != "" && !strings.HasPrefix(text, "-") && strings.IndexFunc(text, func(r rune) bool {
		return !isAlphanumeric(r) && !strings.ContainsRune("._/-", r)
	}) < 0
}

// Summary lists what keys belong to, such as remote.origin and user.name, for
// people: escaped, and first what says where pushes go.
func Summary(keys []string) []string {
	var list []string
	for _, text := range keys {
		k := parseKey(text)
		shown := spelling(k)
		if k.grouped {
			shown = k.section + "." + k.group
		}
		list = append(list, display.Quote(shown))
	}
	slices.SortFunc(list, func(a, b string) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), strings.Compare(a, b))
	})
	return slices.Compact(list)
}

func rank(quoted string) int {
	section, _, _ := strings.Cut(strings.TrimPrefix(quoted, `"`), ".")
	return slices.Index([]string{"branch", "submodule", "remote"}, section) * -1
}
