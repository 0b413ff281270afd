package document

import "strings"

// Position is 1-based. Columns count bytes.
type Position struct{ Line, Column int }

// Span says where a key's value stands and, for a list, where each element
// does.
type Span struct {
	At       Position
	Elements []Position
	// Written is the key as it stands in the file, if it is another: that of a
	// block for one kind of session, or a mode.
	Written string
	// Mode is the mode that sets the key; "" if none does.
	Mode Mode
	// Baseline: the mode allows the platform's baseline at most, and there is no
	// value. That matters to a project's file, which tightens what the user's
	// mode may have opened. The user's own file replaces that mode.
	Baseline bool
}

// Block is the decoded "terminal.sandbox" object of one file. The platform's
// own block is already merged over the base.
type Block struct {
	Values   Sandbox
	Spans    map[string]Span
	Problems []Diagnostic
	// Agent is what Zed grants its agent; nil if nothing.
	Agent *Agent
	// Empty: the file holds nothing, or only comments.
	Empty bool
	// FirstError is the first mistake that leaves open what the file asks for
	// on this platform; nil if there is none.
	FirstError *Diagnostic
	// EditorShell is the program with its arguments that an editor's own
	// "terminal.shell" names; nil if it names none.
	EditorShell []string
	// unclear are the keys that a mistake leaves open; "" is the whole block.
	unclear map[string]bool
}

// Inherit gives the unclear keys the values that an earlier content of the file
// gave them.
func (d *Block) Inherit(earlier *Block) {
	for _, l := range allKeys() {
		span, had := earlier.Spans[l.Name]
		_, has := d.Spans[l.Name]
		if !had || has || !d.Unclear(l.Name) && (span.Mode == "" || !d.Unclear(span.Written)) {
			continue
		}
		if v, ok := l.Get(&earlier.Values); ok {
			l.Set(&d.Values, v)
		}
		d.Spans[l.Name] = span
	}
}

// Unclear reports whether a mistake leaves a key open: one in its own value, in
// a block around it, or in the whole.
func (d *Block) Unclear(key string) bool {
	for group := key; ; {
		if d.unclear[group] {
			return true
		}
		if group == "" {
			return false
		}
		group = group[:max(0, strings.LastIndexByte(group, '.'))]
	}
}

// ByKind reports whether the block has settings for one kind of session.
func (d *Block) ByKind() bool {
	if d == nil {
		return false
	}
	if d.Agent != nil {
		return true // for tools alone
	}
	for key := range d.Spans {
		if kind, _ := SplitKey(key); kind != "" {
			return true
		}
	}
	return false
}

// HasSettings reports whether the block sets any key.
func (d *Block) HasSettings() bool { return d != nil && len(d.Spans) > 0 }

func before(a, b Position) bool { return a.Line < b.Line || a.Line == b.Line && a.Column < b.Column }
