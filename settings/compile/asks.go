package compile

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/sandbox-sidecar/sandbox-sidecar/display"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/document"
)

// Ask is one thing that a project's file asks for beyond the user's own policy.
type Ask struct {
	// Key is the settings key, such as "additional_read_write_paths".
	Key string
	// Value is what the file contains: the entry of a list, or the key's value
	// as JSON.
	Value string
	// Opens is one sentence, without a full stop, about what trusting the
	// project would open.
	Opens string
	// Line and Column are where the value stands, 1-based.
	Line, Column int

	whole bool // Value is the key's whole value, as JSON
	never bool // it does not count in a trusted project either
}

// Message is the ask on one line: its line, its value, and what it opens.
func (a Ask) Message() string {
	return fmt.Sprintf("line %d: %s %s: %s", a.Line, a.Key, a.shown(), a.Opens)
}

// shown is the value as people are shown it: an entry in quotes, JSON as it is.
func (a Ask) shown() string {
	if a.whole {
		return display.Text(a.Value)
	}
	return display.Quote(a.Value)
}

// beyond lists what e opens that alone does not, with the project's values that
// ask for it. Everything that makes the policy wider is in the list. If it is
// empty, trusting the project opens nothing.
func (e *evaluation) beyond(alone *evaluation) []Ask {
	b := &asker{
		e: e, alone: alone, written: e.reporter().written,
		was: policy.NewIndex(&alone.policy), is: policy.NewIndex(&e.policy),
	}
	b.kinds()
	b.grants()
	b.scalars()
	b.shell()
	b.variables()
	b.sockets()
	b.signingKeys()
	b.credentials()
	b.hosts()
	b.protected()
	return b.asks
}

type asker struct {
	e, alone *evaluation
	was, is  *policy.Index     // of the policies of alone and e
	written  map[place]written // see reporter
	asks     []Ask
}

// projects reports whether the project's file sets the key.
func (b *asker) projects(key string) bool {
	from, ok := b.e.user.from[key]
	return ok && from.file == b.e.projectFile
}

func (b *asker) add(key, value string, at document.Position, format string, args ...any) {
	written, other := b.written[place{b.e.projectFile, at}]
	if other {
		key = written.key
	}
	if written.mode != "" {
		value = fmt.Sprintf("%q", written.mode)
	}
	b.asks = append(b.asks, Ask{
		Key: key, Value: value, Opens: fmt.Sprintf(format, args...), Line: at.Line,
		Column: at.Column, whole: written.mode != "",
	})
}

// addKey asks for a key's whole value.
func (b *asker) addKey(key, format string, args ...any) {
	value, ok := document.KeyNamed(key).Get(&b.e.user.values)
	if !ok {
		return
	}
	data, err := json.Marshal(value.Interface())
	if err != nil {
		panic(fmt.Sprintf("BUG(sandbox-sidecar): marshal %s: %v", key, err))
	}
	b.add(key, string(data), b.e.user.from[key].At, format, args...)
	b.asks[len(b.asks)-1].whole = true
}

func (b *asker) grants() {
	for _, u := range b.e.rejected {
		if u.origin.File == b.e.projectFile {
			b.add(u.origin.Key, u.text, u.at, "nothing, because it does not count in a trusted project either: %s",
				u.why)
			b.asks[len(b.asks)-1].never = true
		}
	}
	sets := map[string][]grant{} // grants of a toolchain, by its name
	for _, g := range b.e.granted {
		granted := b.alone.outside.at(g.path).Has(g.access)
		if g.origin.File != b.e.projectFile || granted && !b.unprotects(g) {
			continue
		}
		if from := b.e.bounds.refuses(g.access, g.path); from != nil {
			b.add(g.origin.Key, g.text, g.at, "nothing, because your organisation does not allow it: %s", from)
			b.asks[len(b.asks)-1].never = true
			continue
		}
		if g.origin.Key == toolchainsKey {
			sets[g.text] = append(sets[g.text], g)
			continue
		}
		b.add(g.origin.Key, g.text, g.at, "%s", b.opened(g))
	}
	for _, c := range b.e.toolchains {
		if c.origin.File != b.e.projectFile {
			continue
		}
		var parts []string
		for _, g := range sets[c.Name] {
			parts = append(parts, fmt.Sprintf("may %s %s%s", verbs(g.access), display.Quote(g.path), b.lost(g)))
		}
		var names []string
		for _, v := range c.Variables {
			if !b.alone.policy.Environment.Allows(v.Name) {
				names = append(names, v.Name)
			}
		}
		if len(names) > 0 {
			parts = append(parts, "get your variables "+strings.Join(names, ", "))
		}
		if hosts := b.registries(c); len(hosts) > 0 {
			parts = append(parts, "may connect to "+strings.Join(hosts, ", "))
		}
		if len(parts) > 0 {
			b.add(toolchainsKey, c.Name, c.at, "sessions %s", strings.Join(parts, ", "))
		}
	}
}

// registries are the hosts that sessions reach because of a toolchain.
func (b *asker) registries(c chosen) []string {
	var names []string
	if b.e.policy.Network.Allowed || b.alone.policy.Network.Allowed {
		return nil
	}
	reached := b.alone.reaches()
	for _, h := range b.e.hosts.allowed {
		if h.ofToolchain() && h.origin.Entry == c.Name && !reached(h.pattern) {
			names = append(names, display.Quote(h.pattern.String()))
		}
	}
	return names
}

// opened says what a grant opens.
func (b *asker) opened(g grant) string {
	where := display.Quote(g.path)
	if target := b.e.Resolve(g.path); !target.Exists || target.Mode.IsDir() {
		where += " and everything below it"
	}
	text := fmt.Sprintf("sessions may %s %s", verbs(g.access), where)
	text += b.lost(g)
	if what := b.e.sensitive.Holds(g.path); what != "" {
		text += ": that is " + what
	}
	return text
}

// unprotects reports whether a path is protected without a grant of it, and not
// with it. Then the grant opens it, even if another gives as much access there.
func (b *asker) unprotects(g grant) bool {
	return g.access.Has(policy.Write) && b.was.Protects(g.path) && !b.is.Protects(g.path)
}

// lost says that a grant takes a protection away; "" if it takes none.
func (b *asker) lost(g grant) string {
	if !b.unprotects(g) {
		return ""
	}
	return ", which programs outside of the sandbox rely on"
}

// verbs names an access in words.
func verbs(access policy.Access) string {
	words := (access &^ policy.Device).Names()
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " and " + words[last]
}

// diagnoseAsks says which values of the project's file have no effect until the
// project is trusted, and which have only part of it. It skips what the session
// gets in another way.
func (e *evaluation) diagnoseAsks(r *reporter, asks []Ask) {
	reported := map[document.Position]bool{}
	for _, a := range asks {
		at := document.Position{Line: a.Line, Column: a.Column}
		reported[at] = true
		if a.never {
			continue // there is a diagnostic on it already
		}
		r.add(e.projectFile, at, document.SeverityWarning, a.Key,
			"%s has no effect unless you trust this project; if you do: %s",
			e.withoutEffect(a), a.Opens)
	}
	reached := map[string]bool{}
	for _, rule := range e.policy.Rules {
		for p := range upwards(rule.Path) {
			reached[p] = true
		}
	}
	for _, g := range e.asked {
		if g.origin.File == policy.OriginBuiltIn {
			continue // a mode's
		}
		if !reported[g.at] && !e.cover.at(g.path).Has(g.access&^policy.Device) && reached[g.path] {
			r.add(e.projectFile, g.at, document.SeverityInfo, g.origin.Key,
				"%s: only what your own settings grant below it counts",
				display.Quote(g.text))
		}
	}
}

// withoutEffect is what an ask shows of its value, without what counts already:
// a protected path that the project's file adds.
func (e *evaluation) withoutEffect(a Ask) string {
	if !a.whole || a.Key != protectedKey {
		return a.shown()
	}
	var list []string
	for _, entry := range e.project.values.ProtectedPaths {
		if strings.HasPrefix(entry, "!") {
			list = append(list, display.Quote(entry))
		}
	}
	if len(list) == 0 {
		return "replacing your own list"
	}
	return display.Shorten(strings.Join(list, ", "), display.MaxText)
}
