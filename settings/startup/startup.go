// Package startup finds the files that start-up files of shells read in turn.
//
// [Sourced] lists what one file sources by a name that is the same in every
// session.
package startup

import (
	"path/filepath"
	"slices"
	"strings"
)

// MaxFile bounds the bytes of one start-up file. Long ones have a few thousand
// lines.
const MaxFile = 1 << 20

// Sourced lists the absolute paths behind "." and "source" in a start-up file of
// sh, bash, zsh, ksh, csh or fish, each once. ~, HOME, and variables that the
// text itself assigns are replaced. A word with anything else in it, such as a
// pattern or a command, names nothing, and no condition is evaluated: all are
// taken as met.
func Sourced(text, home string) []string {
	if home == "" || len(text) > MaxFile {
		return nil
	}
	r := reader{variables: map[string]string{"HOME": home}}
	for line := range strings.Lines(text) {
		r.line(strings.TrimRight(line, "\r\n"))
	}
	return r.found
}

type reader struct {
	variables map[string]string
	found     []string
}

// word is a word of a command as the shell would have it. known is false if
// that cannot be told.
type word struct {
	text  string
	known bool
}

// line reads the commands of one line. A quotation that goes on in the next line
// ends what is read of this one.
func (r *reader) line(line string) {
	var command []word
	for rest := line; ; {
		rest = strings.TrimLeft(rest, " \t")
		if rest == "" || rest[0] == '#' {
			break
		}
		if strings.IndexByte(";&|()<>", rest[0]) >= 0 {
			r.command(command)
			command, rest = nil, rest[1:]
			continue
		}
		next, after, whole := r.word(rest)
		if !whole {
			return
		}
		command, rest = append(command, next), after
	}
	r.command(command)
}

// before are words that may stand before a command, or before an assignment.
var before = []string{
	"if", "then", "elif", "else", "while", "until", "do", "!", "{", "and", "or", "not", "time", "builtin", "command",
	"export",
}

// command notes what a command assigns or sources.
func (r *reader) command(words []word) {
	for len(words) > 0 && (slices.Contains(before, words[0].text) || r.assigns(words[0])) {
		words = words[1:]
	}
	if len(words) < 2 || words[0].text != "." && words[0].text != "source" {
		return
	}
	path := filepath.Clean(words[1].text)
	if words[1].known && filepath.IsAbs(path) && !slices.Contains(r.found, path) {
		r.found = append(r.found, path)
	}
}

// assigns notes NAME=VALUE.
func (r *reader) assigns(w word) bool {
	name, value, is := strings.Cut(w.text, "=")
	if !is || name == "" || nameLength(name) != len(name) {
		return false
	}
	delete(r.variables, name)
	if w.known {
		r.variables[name] = value
	}
	return true
}

// word reads the first word of a text. whole is false if its quotation does not
// end there.
func (r *reader) word(text string) (w word, rest string, whole bool) {
	w.known = true
	var out strings.Builder
	quoted := false // in double quotes
	for i := 0; i < len(text); {
		c := text[i]
		switch {
		case c == '"':
			quoted = !quoted
			i++
		case c == '\'' && !quoted:
			literal, _, ends := strings.Cut(text[i+1:], "'")
			if !ends {
				return word{}, "", false
			}
			out.WriteString(literal)
			i += len(literal) + 2
		case c == '\\':
			if i+1 == len(text) {
				return word{}, "", false
			}
			if quoted && strings.IndexByte("\"\\$`", text[i+1]) < 0 {
				out.WriteByte(c)
			}
			out.WriteByte(text[i+1])
			i += 2
		case c == '$':
			value, length, known := r.variable(text[i:])
			out.WriteString(value)
			w.known = w.known && known
			i += length
		case c == '`':
			w.known = false
			i++
		case !quoted && strings.IndexByte(" \t;&|()<>", c) >= 0:
			w.text = out.String()
			return w, text[i:], true
		case !quoted && c == '~' && (i == 0 || text[i-1] == '=') && strings.HasPrefix(text[i:], "~/"):
			out.WriteString(r.variables["HOME"])
			i++
		case !quoted && strings.IndexByte("*?[{~", c) >= 0:
			w.known = false
			out.WriteByte(c)
			i++
		default:
			out.WriteByte(c)
			i++
		}
	}
	w.text = out.String()
	return w, "", !quoted
}

// variable reads "$NAME", "${NAME}" or "${NAME:-VALUE}" and says what it stands
// for, and how long it is. The last stands for VALUE if the text has not assigned
// the variable: what the session's environment holds is not asked.
func (r *reader) variable(text string) (value string, length int, known bool) {
	if !strings.HasPrefix(text, "${") {
		n := nameLength(text[1:])
		value, known = r.variables[text[1:1+n]]
		return value, 1 + n, known
	}
	n := nameLength(text[2:])
	name, rest := text[2:2+n], text[2+n:]
	value, known = r.variables[name]
	if strings.HasPrefix(rest, "}") {
		return value, 2 + n + 1, known
	}
	usual, is := strings.CutPrefix(rest, ":-")
	if !is {
		return "", 2 + n, false
	}
	var out strings.Builder
	usualKnown := true
	for i := 0; i < len(usual); {
		switch c := usual[i]; c {
		case '}':
			if !known {
				value, known = out.String(), usualKnown
			}
			return value, 2 + n + 2 + i + 1, known
		case '$':
			part, length, ok := r.variable(usual[i:])
			out.WriteString(part)
			usualKnown = usualKnown && ok
			i += length
		default:
			usualKnown = usualKnown && strings.IndexByte("\"'`\\~*?[", c) < 0
			out.WriteByte(c)
			i++
		}
	}
	return "", len(text), false
}

// nameLength is the length of the variable name that s starts with.
func nameLength(s string) int {
	for i := range len(s) {
		c := s[i]
		letter := c == '_' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
		if !letter && (i == 0 || c < '0' || '9' < c) {
			return i
		}
	}
	return len(s)
}
