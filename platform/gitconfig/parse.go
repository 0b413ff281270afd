package gitconfig

import (
	"math"
	"slices"
	"strings"
)

// Entry is one variable of a configuration file. The key is spelled as
// "git config --list" does: section and name in lower case, a subsection as it
// is written.
type Entry struct {
	Key, Value string
	Valued     bool // the file has "name = value", and not only "name"
}

// Split returns the section and the name of a key, without the subsection
// between them.
func (e Entry) Split() (section, name string) {
	section, name, ok := strings.Cut(e.Key, ".")
	if !ok {
		return "", e.Key
	}
	return section, name[strings.LastIndexByte(name, '.')+1:]
}

// Blanks is what git makes of blanks inside a value.
type Blanks int

const (
	// BlanksReplaced: each becomes a space, up to git 2.44.
	BlanksReplaced Blanks = iota
	// BlanksKept: they stay as they are, since git 2.45.
	BlanksKept
)

// Parse reads a file as git's config.c does. If git would reject the file, ok is
// false and the entries are all that could be read, also behind the mistake:
// another version of git may accept them.
func Parse(content string, how Blanks) (entries []Entry, ok bool) {
	return ParseUpTo(content, how, math.MaxInt)
}

// ParseUpTo does the same, and stops when the keys and values together have more
// than limit bytes: a file of a megabyte can repeat a long section's name in
// every key. ok is false then.
func ParseUpTo(content string, how Blanks, limit int) (entries []Entry, ok bool) {
	p := &parser{text: content, blanks: how}
	ok = true
	if p.next == 0 && strings.HasPrefix(content, "\uFEFF") {
		p.next = len("\uFEFF")
	} else if content != "" && content[0] == 0xEF {
		ok = false // git tolerates no partial byte order mark
	}
	for !p.ended {
		e, found, valid := p.step()
		if found {
			entries = append(entries, e)
			if limit -= len(e.Key) + len(e.Value); limit < 0 {
				return entries, false
			}
		}
		if !valid {
			ok = false
			p.skipLine()
		}
	}
	return entries, ok
}

// Values lists the values of a key in all sections of a name, whatever their
// subsections. section and key are in lower case. A value that versions of git
// read in two ways is listed twice.
func Values(content, section, key string) []string {
	var list []string
	for _, how := range []Blanks{BlanksReplaced, BlanksKept} {
		entries, _ := Parse(content, how)
		for _, e := range entries {
			in, name := e.Split()
			if e.Valued && strings.EqualFold(in, section) && name == key {
				list = append(list, e.Value)
			}
		}
		if !strings.ContainsAny(content, "\t\r") {
			break // both are the same
		}
	}
	return Compact(list)
}

// Compact removes repetitions. Of equal values it keeps the last, because the
// last value of a variable counts.
func Compact(list []string) []string {
	slices.Reverse(list)
	seen := map[string]bool{}
	list = slices.DeleteFunc(list, func(value string) bool {
		again := seen[value]
		seen[value] = true
		return again
	})
	slices.Reverse(list)
	return list
}

// parser follows git_parse_source() and what it calls.
type parser struct {
	text    string
	blanks  Blanks
	next    int
	last    byte // the last character that read returned
	ended   bool // read has passed the end of the text
	section string
}

// read returns the next character. The end of the text, and a carriage return
// with a line feed, count as a line feed.
func (p *parser) read() byte {
	if p.next >= len(p.text) {
		p.ended = true
		p.last = '\n'
		return p.last
	}
	p.last = p.text[p.next]
	p.next++
	if p.last == '\r' && p.next < len(p.text) && p.text[p.next] == '\n' {
		p.next++
		p.last = '\n'
	}
	return p.last
}

func (p *parser) skipLine() {
	for p.last != '\n' {
		p.read()
	}
}

// step reads a blank, a comment, a header or a variable.
func (p *parser) step() (e Entry, found, valid bool) {
	switch c := p.read(); {
	case isSpace(c):
		return Entry{}, false, true
	case c == '#' || c == ';':
		p.skipLine()
		return Entry{}, false, true
	case c == '[':
		section, valid := p.header()
		// After a wrong header the old section does not go on.
		p.section = section
		return Entry{}, false, valid && section != "."
	case isLetter(c):
		return p.variable(c)
	}
	return Entry{}, false, false
}

// header reads a section's header up to its closing bracket.
func (p *parser) header() (section string, valid bool) {
	var name strings.Builder
	for {
		c := p.read()
		switch {
		case p.ended:
			return name.String() + ".", false
		case c == ']':
			return name.String() + ".", true
		case isSpace(c):
			valid = p.subsection(&name, c)
			return name.String() + ".", valid
		case !isKey(c) && c != '.':
			return name.String() + ".", false
		}
		name.WriteByte(lower(c))
	}
}

// subsection reads the quoted part of a header.
func (p *parser) subsection(name *strings.Builder, c byte) bool {
	for isSpace(c) {
		if c == '\n' {
			return false
		}
		c = p.read()
	}
	if c != '"' {
		return false
	}
	name.WriteByte('.')
	for {
		switch c = p.read(); c {
		case '\n':
			return false
		case '"':
			return p.read() == ']'
		case '\\':
			if c = p.read(); c == '\n' {
				return false
			}
		}
		name.WriteByte(c)
	}
}

// variable reads a name that begins with c, and its value.
func (p *parser) variable(c byte) (e Entry, found, valid bool) {
	var name strings.Builder
	for {
		name.WriteByte(lower(c))
		if c = p.read(); p.ended || !isKey(c) {
			break
		}
	}
	for c == ' ' || c == '\t' {
		c = p.read()
	}
	// git passes keys and values on as strings of C.
	e.Key = untilNUL(p.section + name.String())
	switch c {
	case '\n':
		return e, true, true
	case '=':
		e.Value, valid = p.value()
		e.Value, e.Valued = untilNUL(e.Value), true
		return e, true, valid
	}
	return e, false, false
}

// value reads a value without quotes, escapes and comments. What it returns with
// valid false is the part before the mistake.
func (p *parser) value() (text string, valid bool) {
	var value []byte
	quoted := false
	blank := -1 // where the blanks begin that end the value so far; -1 if there are none
	for {
		c := p.read()
		switch {
		case c == '\n' && quoted:
			return string(value), false
		case c != '\n' && !quoted && isSpace(c):
			if blank < 0 {
				blank = len(value)
			}
			if len(value) > 0 {
				if p.blanks == BlanksReplaced {
					c = ' '
				}
				value = append(value, c)
			}
			continue
		case c == '\n', !quoted && (c == '#' || c == ';'):
			p.skipLine()
			if blank >= 0 {
				value = value[:blank]
			}
			return string(value), true
		}
		blank = -1
		switch c {
		case '"':
			quoted = !quoted
			continue
		case '\\':
			switch c = p.read(); c {
			case '\n':
				continue
			case 't':
				c = '\t'
			case 'b':
				c = '\b'
			case 'n':
				c = '\n'
			case '\\', '"':
			default:
				return string(value), false
			}
		}
		value = append(value, c)
	}
}

func untilNUL(text string) string {
	text, _, _ = strings.Cut(text, "\x00")
	return text
}

func isSpace(c byte) bool  { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }
func isLetter(c byte) bool { return 'a' <= lower(c) && lower(c) <= 'z' }
func isKey(c byte) bool    { return isLetter(c) || '0' <= c && c <= '9' || c == '-' }

func lower(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		c += 'a' - 'A'
	}
	return c
}
