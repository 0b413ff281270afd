package darwin

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// A parser and an evaluator of profiles. They implement what is known about the
// language from outside: Apple does not document it.

// rule is one "(allow …)" or "(deny …)".
type rule struct {
	allow      bool
	operations []string
	filters    []any // none: everything
}

// The parser's atoms: a quoted string, and everything else.
type (
	quoted string
	symbol string
)

// readProfile parses a profile and inserts its parameters.
func readProfile(p Profile) ([]rule, error) {
	parameters := map[string]string{}
	for i := 0; i+1 < len(p.Parameters); i += 2 {
		if _, twice := parameters[p.Parameters[i]]; twice {
			return nil, fmt.Errorf("parameter %s is given twice", p.Parameters[i])
		}
		parameters[p.Parameters[i]] = p.Parameters[i+1]
	}
	r := reader{rest: p.Text, parameters: parameters, used: map[string]bool{}}
	var rules []rule
	version := false
	for {
		r.blanks()
		if r.rest == "" {
			break
		}
		list, err := r.list()
		if err != nil {
			return nil, err
		}
		switch head := list[0].(symbol); head {
		case "version":
			version = len(rules) == 0
		case "allow", "deny":
			one := rule{allow: head == "allow"}
			for _, part := range list[1:] {
				if operation, ok := part.(symbol); ok {
					one.operations = append(one.operations, string(operation))
				} else if filter := part.([]any); filter[0] != symbol("with") {
					one.filters = append(one.filters, part)
				}
			}
			rules = append(rules, one)
		default:
			return nil, fmt.Errorf("(%s …) is not known", head)
		}
	}
	if !version {
		return nil, fmt.Errorf("the version does not come first")
	}
	for key := range parameters {
		if !r.used[key] {
			return nil, fmt.Errorf("parameter %s is given and not used", key)
		}
	}
	return rules, nil
}

type reader struct {
	rest       string
	parameters map[string]string
	used       map[string]bool
}

func (r *reader) blanks() {
	for {
		r.rest = strings.TrimLeft(r.rest, " \t\n")
		if !strings.HasPrefix(r.rest, ";") {
			return
		}
		_, r.rest, _ = strings.Cut(r.rest, "\n")
	}
}

// list parses "( … )". A (param "KEY") is replaced by its value.
func (r *reader) list() ([]any, error) {
	if !strings.HasPrefix(r.rest, "(") {
		return nil, fmt.Errorf("expected a list at %.40q", r.rest)
	}
	r.rest = r.rest[1:]
	var list []any
	for {
		r.blanks()
		switch {
		case r.rest == "":
			return nil, fmt.Errorf("a list does not end")
		case r.rest[0] == ')':
			r.rest = r.rest[1:]
			if len(list) == 0 {
				return nil, fmt.Errorf("a list is empty")
			}
			if _, ok := list[0].(symbol); !ok {
				return nil, fmt.Errorf("a list begins with no name")
			}
			return list, nil
		case r.rest[0] == '(':
			inner, err := r.list()
			if err != nil {
				return nil, err
			}
			if inner[0] == symbol("param") {
				key := string(inner[1].(quoted))
				value, ok := r.parameters[key]
				if !ok {
					return nil, fmt.Errorf("parameter %s is not given", key)
				}
				r.used[key] = true
				list = append(list, quoted(value))
				continue
			}
			list = append(list, inner)
		case r.rest[0] == '"' || strings.HasPrefix(r.rest, `#"`):
			raw := r.rest[0] == '#'
			r.rest = r.rest[strings.IndexByte(r.rest, '"')+1:]
			end := strings.IndexByte(r.rest, '"')
			if end < 0 || (!raw && strings.Contains(r.rest[:end], `\`)) {
				return nil, fmt.Errorf("a string does not end, or is escaped: %.40q", r.rest)
			}
			list = append(list, quoted(r.rest[:end]))
			r.rest = r.rest[end+1:]
		default:
			end := strings.IndexAny(r.rest, "() \t\n\"")
			if end <= 0 {
				return nil, fmt.Errorf("what is %.40q", r.rest)
			}
			list = append(list, symbol(r.rest[:end]))
			r.rest = r.rest[end:]
		}
	}
}

// question is an operation on an object. Its attributes have the names of the
// filters that test them.
type question struct {
	operation  string
	attributes map[string]string
}

func (q question) String() string { return fmt.Sprintf("%s %v", q.operation, q.attributes) }

// model is one of the ways in which macOS has been seen to choose between
// rules.
type model struct {
	// specificOperation: a rule on the exact operation beats any on a wildcard.
	specificOperation bool
	// filterBeatsNone: a rule with a filter beats any without.
	filterBeatsNone bool
	// linkIsWrite: file-link and file-clone lie beneath file-write*.
	linkIsWrite bool
	// openByDefault: "default" does not reach notInDefault, which are then open
	// until a rule denies them.
	openByDefault bool
}

// notInDefault are the operations that (deny default) has been seen to leave
// open.
var notInDefault = append([]string{"iokit-get-properties"}, openByVersion...)

func leftOpen(operation string) bool {
	return slices.ContainsFunc(notInDefault, func(name string) bool { return model{}.names(name, operation) > 1 })
}

// models are all of them. A test's claim must hold under each.
func models() []model {
	var list []model
	for i := range 16 {
		list = append(list, model{i&1 != 0, i&2 != 0, i&4 != 0, i&8 != 0})
	}
	return list
}

// names returns how closely a rule's operation matches another: 0 not at all, 1
// by default, 2 by a wildcard, 3 exactly.
func (m model) names(rule, operation string) int {
	prefix, wildcard := strings.CutSuffix(rule, "*")
	switch {
	case rule == operation:
		return 3
	case wildcard && (operation == "file-link" || operation == "file-clone") && prefix == "file-write":
		if m.linkIsWrite {
			return 2
		}
		return 0
	case wildcard && (operation == prefix || strings.HasPrefix(operation, prefix+"-")):
		return 2
	case rule == "default" && (!m.openByDefault || !leftOpen(operation)):
		return 1
	}
	return 0
}

// matching are the rules that some model may choose between for a question.
func matching(rules []rule, q question) ([]rule, error) {
	var list []rule
	for _, rule := range rules {
		named := slices.ContainsFunc(rule.operations, func(operation string) bool {
			return model{linkIsWrite: true}.names(operation, q.operation) > 0
		})
		matches := len(rule.filters) == 0
		for _, filter := range rule.filters {
			if !named || matches {
				break
			}
			one, err := match(filter.([]any), q)
			if err != nil {
				return nil, err
			}
			matches = one
		}
		if named && matches {
			list = append(list, rule)
		}
	}
	return list, nil
}

// allows answers one question under one model. All rules match it.
func (m model) allows(rules []rule, q question) (bool, error) {
	best, allowed, found := [3]int{-1, -1, -1}, false, false
	for i, rule := range rules {
		closeness := 0
		for _, operation := range rule.operations {
			closeness = max(closeness, m.names(operation, q.operation))
		}
		if closeness == 0 {
			continue
		}
		rank := [3]int{0, 0, i}
		if m.specificOperation {
			rank[0] = closeness
		}
		if m.filterBeatsNone {
			rank[1] = min(len(rule.filters), 1)
		}
		if slices.Compare(rank[:], best[:]) > 0 {
			best, allowed, found = rank, rule.allow, true
		}
	}
	if !found && m.openByDefault && leftOpen(q.operation) {
		return true, nil
	}
	if !found {
		return false, fmt.Errorf("no rule decides %s", q)
	}
	return allowed, nil
}

// patterns are those that were compiled: a profile has hundreds, and a test asks
// it hundreds of questions.
var patterns sync.Map

func compiled(text string) (*regexp.Regexp, error) {
	if known, ok := patterns.Load(text); ok {
		return known.(*regexp.Regexp), nil
	}
	pattern, err := regexp.Compile(text)
	if err == nil {
		patterns.Store(text, pattern)
	}
	return pattern, err
}

// match tests one filter.
func match(filter []any, q question) (bool, error) {
	name := string(filter[0].(symbol))
	value, has := q.attributes[name]
	text := func() string {
		if len(filter) < 2 {
			return ""
		}
		switch atom := filter[1].(type) {
		case quoted:
			return string(atom)
		case symbol:
			return string(atom)
		}
		return ""
	}
	path, hasPath := q.attributes["path"]
	switch name {
	case "require-all", "require-any":
		for _, part := range filter[1:] {
			one, err := match(part.([]any), q)
			if err != nil {
				return false, err
			}
			if one != (name == "require-all") {
				return one, nil
			}
		}
		return name == "require-all", nil
	case "literal", "path-literal":
		return hasPath && path == text(), nil
	case "subpath":
		return hasPath && (path == text() || text() == "/" || strings.HasPrefix(path, text()+"/")), nil
	case "regex":
		pattern, err := compiled(text())
		return hasPath && err == nil && pattern.MatchString(path), err
	case "remote", "local":
		kind := text()
		if value != kind || len(filter) == 2 {
			return value == kind, nil
		}
		if host, ok := filter[2].(quoted); ok {
			return q.attributes["address"] == string(host), nil
		}
		return match(filter[2].([]any), q)
	case "ipc-posix-name-regex":
		pattern, err := compiled(text())
		name, named := q.attributes["ipc-posix-name"]
		return named && err == nil && pattern.MatchString(name), err
	case "sysctl-name-prefix", "ipc-posix-name-prefix":
		value, has = q.attributes[strings.TrimSuffix(name, "-prefix")]
		return has && strings.HasPrefix(value, text()), nil
	case "target", "global-name", "sysctl-name", "mac-policy-name", "mac-syscall-number", "fsctl-command",
		"ipc-posix-name", "preference-domain",
		"iokit-registry-entry-class", "extension", "ioctl-command", "vnode-type", "socket-domain", "socket-protocol":
		return has && value == text(), nil
	}
	return false, fmt.Errorf("filter (%s …) is not known", name)
}
