package compile

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/sandbox-sidecar/sandbox-sidecar/display"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/hosts"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/document"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/resolve"
)

const credentialsKey = document.CredentialsKey

// Mistakes in an entry of credentials. Its secret is kept away.
var (
	errCommandName = errors.New(`a command needs "as", the variable that has its placeholder`)
	errCommandFile = errors.New("a path has no command: its secrets are those of the file")
	errAsAlone     = errors.New(`"as" is for a command; a variable has its placeholder itself`)
	errNeither     = errors.New("expected the name of a variable, a path from ~/ or /, or a command")
	errAsVariable  = errors.New(`"as" is not the name of a variable`)
	errOutside     = errors.New("a project's file names no command: it would run outside the sandbox")
)

// chooseCredentials are the secrets that sessions use without having them. unclear
// is a mistake after which nobody knows which are meant; nil if there is none.
func chooseCredentials(
	view fsView, l layers, p project, r *reporter,
) (list []policy.Credential, unclear *document.FileDiagnostic) {
	for _, state := range l.states {
		if state.Good != nil && state.Good.FirstError != nil &&
			(state.Good.Unclear(credentialsKey) || state.Good.Unclear(document.KeyOf(l.kind, credentialsKey))) {
			unclear = cmp.Or(unclear, &document.FileDiagnostic{File: state.File, Diagnostic: *state.Good.FirstError})
		}
	}
	return credentialsOf(view, &l.user, p, l.projectFile, r), unclear
}

// credentialsOf reads the entries of a layer. An entry with a mistake has no hosts.
func credentialsOf(
	view fsView, s *settings, p project, projectFile string, r *reporter,
) (list []policy.Credential) {
	for _, name := range slices.Sorted(maps.Keys(s.values.Credentials)) {
		entry := s.values.Credentials[name]
		c := policy.Credential{Name: name, Hosts: []string{}, Origin: policy.Origin{
			File: entry.File, Key: credentialsKey, Line: entry.At.Line,
		}}
		wrong := func(format string, args ...any) {
			r.add(entry.File, entry.At, document.SeverityError, credentialsKey, "%s: %s; the secret is only kept away",
				display.Quote(name), fmt.Sprintf(format, args...))
		}
		err := view.subject(&c, entry, p)
		if err == nil && len(c.Command) > 0 && entry.File != "" && entry.File == projectFile {
			c.Command, err = nil, errOutside
		}
		if err != nil {
			wrong("%v", err)
			if c.Variable != "" || c.File != "" || c.As != "" {
				list = append(list, c)
			}
			continue
		}
		for _, text := range entry.Hosts {
			pattern, err := hosts.ParseCredential(text)
			if err != nil {
				r.add(entry.File, entry.At, document.SeverityError, credentialsKey,
					"%s: %s: %v; the host does not count", display.Quote(name), display.Quote(text), err)
				continue
			}
			c.Hosts = append(c.Hosts, pattern.String())
		}
		slices.Sort(c.Hosts)
		c.Hosts = slices.Compact(c.Hosts)
		list = append(list, c)
	}
	return list
}

// subject finds out what a credential is about: a variable, a file or a command.
func (v fsView) subject(c *policy.Credential, entry *document.Credential, p project) error {
	isPath := strings.ContainsAny(c.Name, "/~")
	switch {
	case isPath && len(entry.Command) > 0:
		return errCommandFile
	case isPath:
		path, err := v.host.Expand(c.Name, p.path)
		if err != nil {
			return err
		}
		target := v.Resolve(path)
		c.File, c.Format = target.Path, path
		return target.Err
	case len(entry.Command) > 0:
		if entry.As == nil {
			return errCommandName
		}
		if !resolve.IsName(*entry.As) {
			return errAsVariable
		}
		c.As, c.Command = *entry.As, slices.Clone(entry.Command)
		return nil
	case !resolve.IsName(c.Name):
		return errNeither
	}
	if c.Variable = c.Name; entry.As != nil {
		return errAsAlone
	}
	return nil
}

// subjectOf identifies what a credential is about.
func subjectOf(c policy.Credential) string {
	return strings.Join([]string{c.Variable, c.File, c.As}, "\x00")
}

// hideCredentials takes the files of credentials out of the policy, whatever grants
// them: sessions have a copy with placeholders.
func (e *evaluation) hideCredentials(r *reporter) {
	hidden := map[string]policy.Credential{}
	for _, c := range e.policy.Credentials {
		if c.File != "" {
			hidden[c.File] = c
		}
	}
	if len(hidden) == 0 {
		return
	}
	var rules []policy.Rule
	for _, rule := range e.policy.Rules {
		c, is := hidden[rule.Path]
		if !is {
			rules = append(rules, rule)
			continue
		}
		if rule.Origin.File != policy.OriginBuiltIn {
			r.add(c.Origin.File, e.user.values.Credentials[c.Name].At, document.SeverityInfo, credentialsKey,
				"%s: sessions read its copy with placeholders, although %s grants the file", display.Quote(c.Name),
				rule.Origin)
		}
	}
	e.policy.Rules = rules
	e.policy.Copies = slices.DeleteFunc(slices.Clone(e.policy.Copies), func(c policy.Copy) bool {
		_, is := hidden[c.Path]
		return is
	})
	e.policy.Hidden = slices.DeleteFunc(slices.Clone(e.policy.Hidden), func(h policy.Hidden) bool {
		_, is := hidden[h.Path]
		return is
	})
	left := policy.NewIndex(&e.policy)
	for path, c := range hidden {
		if left.At(path) != 0 {
			e.bounds.protects = true // a machine that cannot hide it would show the secret
			e.policy.Hidden = append(e.policy.Hidden, policy.Hidden{Path: path, Origin: c.Origin})
		}
	}
	slices.SortFunc(e.policy.Hidden, func(a, b policy.Hidden) int { return cmp.Compare(a.Path, b.Path) })
}

// diagnoseCredentials finds credentials that cannot be used.
func (e *evaluation) diagnoseCredentials(r *reporter) {
	reached := e.reaches()
	for _, c := range e.policy.Credentials {
		entry := e.user.values.Credentials[c.Name]
		if entry == nil {
			continue // the organisation's
		}
		say := func(severity document.Severity, format string, args ...any) {
			r.add(entry.File, entry.At, severity, credentialsKey, "%s: %s", display.Quote(c.Name),
				fmt.Sprintf(format, args...))
		}
		switch {
		case len(c.Hosts) == 0:
			continue
		case e.host.Platform != "linux":
			say(document.SeverityWarning, "has no effect on macOS yet: the secret is only kept away")
			continue
		case e.policy.Network.Allowed:
			say(document.SeverityWarning, "has no effect while allow_network is true: no host takes the placeholder")
			continue
		}
		for _, text := range c.Hosts {
			if pattern, err := hosts.ParseCredential(text); err == nil && !reached(pattern) {
				say(document.SeverityWarning, `sessions do not reach %s: add it to "allowed_hosts"`,
					display.Quote(text))
			}
		}
	}
}

// credentials makes the organisation's entries count: a secret that it names enters
// no session, and goes to its hosts alone.
func (b bounding) credentials(s *settings) {
	if !s.sets(credentialsKey) {
		return
	}
	list := slices.Clone(b.policy.Credentials)
	for _, required := range credentialsOf(b.view, s, b.project, "", b.reporter) {
		at := slices.IndexFunc(list, func(c policy.Credential) bool { return subjectOf(c) == subjectOf(required) })
		if at < 0 {
			list = append(list, required)
			continue
		}
		allowed := required.Hosts
		list[at].Hosts = slices.DeleteFunc(slices.Clone(list[at].Hosts), func(host string) bool {
			return !slices.Contains(allowed, host)
		})
		list[at].Origin = required.Origin
	}
	slices.SortFunc(list, func(a, b policy.Credential) int { return cmp.Compare(a.Name, b.Name) })
	b.policy.Credentials = list
	merged := map[string]*document.Credential{}
	maps.Copy(merged, b.merged.Credentials)
	maps.Copy(merged, s.values.Credentials)
	b.decides(s, credentialsKey, merged)
}

// credentials asks for secrets that sessions use, and for those that they would
// have.
func (b *asker) credentials() {
	if !b.projects(credentialsKey) {
		return
	}
	before := map[string]policy.Credential{}
	for _, c := range b.alone.policy.Credentials {
		before[subjectOf(c)] = c
	}
	for _, c := range b.e.policy.Credentials {
		was, had := before[subjectOf(c)]
		delete(before, subjectOf(c))
		var more []string
		for _, host := range c.Hosts {
			if !had || !slices.Contains(was.Hosts, host) {
				more = append(more, display.Quote(host))
			}
		}
		if entry := b.e.user.values.Credentials[c.Name]; len(more) > 0 && entry != nil {
			b.add(credentialsKey, c.Name, entry.At, "sessions may use your %s at %s", display.Quote(c.Name),
				strings.Join(more, ", "))
		}
	}
	for _, subject := range slices.Sorted(maps.Keys(before)) {
		b.addKey(credentialsKey, "your %s is not kept away from sessions", display.Quote(before[subject].Name))
	}
}
