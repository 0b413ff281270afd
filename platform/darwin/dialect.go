package darwin

import (
	"slices"
	"strings"
)

// Dialect is what the compiler of one macOS takes of our profiles, and what was
// tried with a profile that it took. The zero value takes everything, and nothing
// was tried.
type Dialect struct {
	// Operations are those that the compiler does not know. They are taken out of
	// every rule.
	Operations []string `json:"operations,omitempty"`
	// Modifiers are the shapes of modifiers that the compiler does not know. They
	// are taken out of every rule.
	Modifiers []string `json:"modifiers,omitempty"`
	// Lines are the forms of rules that are left out.
	Lines []string `json:"lines,omitempty"`
	// Typing is what a try to type into a terminal has shown.
	Typing Typing `json:"typing,omitempty"`
}

// Typing is whether a program in the sandbox can put input into a terminal, as if
// it had been typed (TIOCSTI). A shell outside would run it.
type Typing string

const (
	// TypingUntried: it is not known.
	TypingUntried Typing = ""
	// TypingDenied: it worked without the sandbox, and is denied in it.
	TypingDenied Typing = "denied"
	// TypingRefused: macOS refuses it without the sandbox, too.
	TypingRefused Typing = "refused"
	// TypingOpen: it is not denied.
	TypingOpen Typing = "open"
)

// takesAll reports whether the dialect leaves nothing out.
func (d Dialect) takesAll() bool {
	return len(d.Operations) == 0 && len(d.Modifiers) == 0 && len(d.Lines) == 0
}

// In returns the profile without what the dialect leaves out.
func (p Profile) In(d Dialect) Profile {
	if d.takesAll() {
		return p
	}
	var text strings.Builder
	for line := range strings.Lines(p.Text) {
		if rule, ok := parseRule(strings.TrimSuffix(line, "\n")); ok {
			if rule, ok = d.takes(rule); !ok {
				continue
			}
			line = rule.String() + "\n"
		}
		text.WriteString(line)
	}
	left := Profile{Text: text.String()}
	for i := 0; i+1 < len(p.Parameters); i += 2 {
		if strings.Contains(left.Text, `(param "`+p.Parameters[i]+`")`) {
			left.Parameters = append(left.Parameters, p.Parameters[i], p.Parameters[i+1])
		}
	}
	return left
}

// takes returns a rule without what the dialect leaves out; ok is false if that
// is all of it.
func (d Dialect) takes(rule ruleLine) (taken ruleLine, ok bool) {
	taken = d.strip(rule)
	return taken, !d.leavesOut(rule) && len(taken.operations) > 0
}

// leavesOut reports whether the dialect leaves a rule out as a whole. A rule of
// which a part was left out first has another form by then.
func (d Dialect) leavesOut(rule ruleLine) bool {
	return slices.Contains(d.Lines, rule.form()) || slices.Contains(d.Lines, d.strip(rule).form())
}

// strip returns a rule without the operations and modifiers that the dialect leaves
// out.
func (d Dialect) strip(rule ruleLine) ruleLine {
	rule.operations = slices.DeleteFunc(slices.Clone(rule.operations), func(operation string) bool {
		return slices.Contains(d.Operations, operation)
	})
	rule.rest = slices.DeleteFunc(slices.Clone(rule.rest), func(part expression) bool {
		return part.isModifier() && slices.Contains(d.Modifiers, part.shape(true))
	})
	return rule
}

// loosens lists the rules of a profile's text that deny something which would be
// open in the dialect on that macOS; its version is 0 if it is not known. To
// leave out what allows something loosens nothing.
func (d Dialect) loosens(text string, version int) []string {
	rules := ruleLines(text)
	var open []string
	for _, rule := range rules {
		if rule.action != "deny" {
			continue
		}
		switch {
		case d.leavesOut(rule):
			if !d.strip(rule).isTyping() || (d.Typing != TypingDenied && d.Typing != TypingRefused) {
				open = append(open, rule.String())
			}
		case slices.ContainsFunc(rule.operations, func(operation string) bool {
			return slices.Contains(d.Operations, operation) && d.opens(operation, rule, rules, version)
		}):
			open = append(open, rule.String())
		}
	}
	return open
}

// opens reports whether an operation is open once it is taken out of every rule,
// of which one denies it.
func (d Dialect) opens(operation string, denial ruleLine, rules []ruleLine, version int) bool {
	covers := func(other string) bool {
		prefix, wildcard := strings.CutSuffix(other, "*")
		return other != operation && !slices.Contains(d.Operations, other) &&
			(other == "default" || wildcard && strings.HasPrefix(operation, prefix))
	}
	if slices.ContainsFunc(denial.operations, covers) {
		return false
	}
	for _, rule := range rules {
		if rule.action == "allow" && slices.ContainsFunc(rule.operations, covers) {
			return true
		}
	}
	// Without its name it cannot be closed. If no public source knows the name on
	// this macOS, there is nothing of that name to close.
	return slices.Contains(openByVersion, operation) && !isNewer(symbolSince[operation], version)
}

// isTyping reports whether the rule denies typing, which is tried.
func (r ruleLine) isTyping() bool {
	return r.action == "deny" && slices.Equal(r.operations, []string{"file-ioctl"}) &&
		slices.Contains(r.symbols(), typingFilter)
}

// isNewer reports whether something that is known since one version may be
// missing in another, which is 0 if it is not known.
func isNewer(since, version int) bool { return version > 0 && since > version }

// suspects is the dialect of a macOS of which nothing could be tried: that
// without the symbols that no public source shows there.
func suspects(text string, version int) Dialect {
	var d Dialect
	add := func(list *[]string, name string) {
		if !slices.Contains(*list, name) {
			*list = append(*list, name)
		}
	}
	for _, rule := range ruleLines(text) {
		for _, name := range rule.symbols() {
			if !isNewer(symbolSince[name], version) {
				continue
			}
			switch {
			case slices.Contains(rule.operations, name):
				add(&d.Operations, name)
			case strings.HasPrefix(name, "(with "):
				add(&d.Modifiers, name)
			default:
				add(&d.Lines, rule.form())
			}
		}
	}
	return d
}
