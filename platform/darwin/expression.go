package darwin

import (
	"slices"
	"strings"
)

// expression is a part of a line of a profile: a list, or an atom.
type expression struct {
	list []expression // nil for an atom
	atom string       // as it is written; a string with its quotation marks
}

// ruleLine is one line "(allow …)" or "(deny …)", of which every line of a profile
// consists that is neither empty, nor a comment, nor the version.
type ruleLine struct {
	action     string
	operations []string
	rest       []expression // filters and modifiers
}

// parseRule parses a line. ok is false if it is no rule. The profiles are our
// own: a string holds no quotation mark.
func parseRule(line string) (rule ruleLine, ok bool) {
	if !strings.HasPrefix(line, "(allow ") && !strings.HasPrefix(line, "(deny ") {
		return ruleLine{}, false
	}
	whole, rest := parseExpression(line)
	if rest != "" {
		return ruleLine{}, false
	}
	rule.action = whole.list[0].atom
	for _, part := range whole.list[1:] {
		if part.list == nil {
			rule.operations = append(rule.operations, part.atom)
		} else {
			rule.rest = append(rule.rest, part)
		}
	}
	return rule, true
}

// parseExpression parses the first expression of a text, and returns what
// follows it. A list that does not end leaves its last parenthesis out.
func parseExpression(text string) (parsed expression, rest string) {
	text = strings.TrimLeft(text, " ")
	if !strings.HasPrefix(text, "(") {
		end := strings.IndexAny(text, "() ")
		if quote := strings.IndexByte(text, '"'); quote >= 0 && (end < 0 || quote < end) {
			end = quote + 1 + strings.IndexByte(text[quote+1:], '"') + 1
		}
		if end <= 0 {
			end = len(text)
		}
		return expression{atom: text[:end]}, text[end:]
	}
	parsed.list, text = []expression{}, text[1:]
	for {
		text = strings.TrimLeft(text, " ")
		if text == "" {
			return parsed, "("
		}
		if text[0] == ')' {
			return parsed, text[1:]
		}
		var part expression
		part, text = parseExpression(text)
		parsed.list = append(parsed.list, part)
	}
}

// aString is how a shape shows any string.
const aString = `"…"`

// isParameter reports whether the expression is (param "KEY"). It is a call that
// the interpreter replaces by a string, before a filter sees it.
func (e expression) isParameter() bool { return len(e.list) == 2 && e.list[0].atom == "param" }

// shape is the expression without what depends on a session: any string is the
// same, a parameter is a string, and lists with the same shape one after the
// other are one. If it is shallow, all lists within are the same.
func (e expression) shape(shallow bool) string {
	switch {
	case e.isParameter(), strings.HasSuffix(e.atom, `"`):
		return aString
	case e.list == nil:
		return e.atom
	}
	var parts []string
	for _, part := range e.list {
		shape := part.shape(shallow)
		if shallow && part.list != nil && !part.isParameter() {
			shape = "(…)"
		}
		if last := len(parts) - 1; part.list != nil && last >= 0 && parts[last] == shape {
			continue
		}
		parts = append(parts, shape)
	}
	return "(" + strings.Join(parts, " ") + ")"
}

// String is the rule as a line.
func (r ruleLine) String() string {
	parts := append([]string{r.action}, r.operations...)
	for _, part := range r.rest {
		parts = append(parts, part.text())
	}
	return "(" + strings.Join(parts, " ") + ")"
}

func (e expression) text() string {
	if e.list == nil {
		return e.atom
	}
	parts := make([]string, 0, len(e.list))
	for _, part := range e.list {
		parts = append(parts, part.text())
	}
	return "(" + strings.Join(parts, " ") + ")"
}

// form is the rule's shape. Rules of one form compile alike.
func (r ruleLine) form() string {
	whole := expression{list: []expression{{atom: r.action}}}
	for _, operation := range r.operations {
		whole.list = append(whole.list, expression{atom: operation})
	}
	whole.list = append(whole.list, r.rest...)
	return whole.shape(false)
}

// symbols are the rule's operations and the shallow shapes of its filters and
// modifiers, with those within them.
func (r ruleLine) symbols() []string {
	found := slices.Clone(r.operations)
	var add func(e expression)
	add = func(e expression) {
		if e.list == nil {
			return
		}
		if e.isParameter() {
			found = append(found, parameterSymbol)
			return
		}
		found = append(found, e.shape(true))
		for _, part := range e.list {
			add(part)
		}
	}
	for _, part := range r.rest {
		add(part)
	}
	return found
}

// parameterSymbol is the symbol of (param "KEY").
const parameterSymbol = "(param " + aString + ")"

// isModifier reports whether the expression changes what a rule does beside its
// decision, and not what it is about.
func (e expression) isModifier() bool { return len(e.list) > 0 && e.list[0].atom == "with" }

// ruleLines are the rules of a profile's text.
func ruleLines(text string) []ruleLine {
	var rules []ruleLine
	for line := range strings.Lines(text) {
		if rule, ok := parseRule(strings.TrimSuffix(line, "\n")); ok {
			rules = append(rules, rule)
		}
	}
	return rules
}
