// Package startup finds the files that start-up files of shells read in turn.
//
// [Sourced] lists what one file sources by a name, or a pattern, that is the same
// in every session.
package startup

import (
	"path/filepath"
	"slices"
	"strings"
)

// MaxFile bounds the bytes of one start-up file. Long ones have a few thousand
// lines.
const MaxFile = 1 << 20

// Source is what a start-up file sources.
type Source struct {
	// Path is absolute and clean.
	Path string
	// Pattern: the last name of Path has "*" for any characters. A loop sources
	// all that match.
	Pattern bool
	// Wide: it sources only some of what matches.
	Wide bool
	// Deep: there are "*" in the names of directories, too. "**" is any number of
	// them.
	Deep bool
}

// Sourced lists what stands behind "." and "source" in a start-up file of sh,
// bash, zsh, ksh, csh or fish, each once. ~, HOME, and variables that the text
// itself assigns are replaced, and a variable of "for" stands for each word of its
// list: those may have {A,B} and patterns. "?" and "[a-z]" are taken for "*". What
// ENV, BASH_ENV and ZDOTDIR name is sourced. A relative name is found in the
// directory of the last cd. A word with anything else in it, such as a command,
// names nothing, and no condition is evaluated: all are taken as met.
func Sourced(text, home string) []Source {
	if home == "" || len(text) > MaxFile {
		return nil
	}
	r := reader{home: home, variables: map[string]string{"HOME": home}, loops: map[string][]word{}}
	for line := range strings.Lines(text) {
		r.line(strings.TrimRight(line, "\r\n"))
	}
	return r.found
}

type reader struct {
	home      string
	dir       string // of the last cd; "" if there was none, or it is not known
	variables map[string]string
	loops     map[string][]word // the lists of "for", by the variable
	list      string            // the variable whose list comes next in parentheses, as in zsh
	found     []Source
}

// word is a word of a command as the shell would have it. known is false if
// that cannot be told.
type word struct {
	text    string
	known   bool
	pattern bool   // it has "*" without quotes
	wide    bool   // that stands for something narrower
	loop    string // the variable of "for" in it
	lead    string // what stands before that, of text
	raw     string // as it is written
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
			r.command(command, rest[0] == '(')
			command, rest = nil, rest[1:]
			continue
		}
		next, after, whole := r.word(rest)
		if !whole {
			return
		}
		next.raw = rest[:len(rest)-len(after)]
		command, rest = append(command, next), after
	}
	r.command(command, false)
}

// before are words that may stand before a command, or before an assignment.
var before = []string{
	"if", "then", "elif", "else", "while", "until", "do", "!", "{", "and", "or", "not", "time", "builtin", "command",
	"noglob", "export", "declare", "typeset", "local", "readonly",
}

// command notes what a command assigns, loops over or sources. opens says that a
// parenthesis is behind it.
func (r *reader) command(words []word, opens bool) {
	if r.list != "" {
		r.loop(r.list, words)
		r.list = ""
		return
	}
	for first := true; len(words) > 0; first = false {
		option := !first && strings.HasPrefix(words[0].text, "-")
		if !option && !slices.Contains(before, words[0].text) && !r.assigns(words[0]) {
			break
		}
		words = words[1:]
	}
	if len(words) > 1 && words[1].text == "--" {
		words = slices.Delete(words, 1, 2)
	}
	if len(words) == 1 {
		switch words[0].text {
		case "cd":
			r.dir = r.home
		case "}": // of a function, which nobody may call
			r.dir = ""
		}
	}
	if len(words) < 2 {
		return
	}
	switch name := words[1].text; words[0].text {
	case "cd":
		to := words[1]
		for _, to = range words[1:] {
			if !strings.HasPrefix(to.text, "-") || to.text == "-" {
				break
			}
		}
		switch {
		case to.text == "-":
			r.dir = ""
		case to.text == "~" && to.raw == "~":
			r.dir = r.home
		case !to.known || to.pattern || to.loop != "":
			r.dir = ""
		case filepath.IsAbs(to.text):
			r.dir = filepath.Clean(to.text)
		case r.dir != "":
			r.dir = filepath.Join(r.dir, to.text)
		}
	case "for":
		if nameLength(name) != len(name) {
			return
		}
		r.loop(name, nil)
		if len(words) > 2 && words[2].text == "in" {
			r.loop(name, words[3:])
		} else if len(words) == 2 && opens {
			r.list = name
		}
	case ".", "source":
		if words[1].loop == "" && !words[1].pattern { // of a pattern, one file would be sourced
			r.source(words[1])
		}
		for _, one := range r.loops[words[1].loop] {
			w := words[1]
			w.text = w.lead + one.text + w.text[len(w.lead):]
			w.known, w.pattern, w.wide = w.known && one.known, w.pattern || one.pattern, w.wide || one.wide
			r.source(w)
		}
	}
}

// loop notes the list of a variable of "for".
func (r *reader) loop(name string, words []word) {
	delete(r.variables, name)
	var list []word
	for _, w := range words {
		for _, one := range braces(w.raw) {
			if next, rest, whole := r.word(one); whole && rest == "" && next.loop == "" {
				list = append(list, next)
			}
		}
	}
	r.loops[name] = list
}

// maxBraces bounds the words that one with braces stands for.
const maxBraces = 64

// braces are the words that "A{B,C}D" stands for: ABD and ACD. A word with braces in
// braces, or with quotation marks in them, stands for itself, and names nothing.
func braces(raw string) []string {
	quote := byte(0)
	for i := 0; i < len(raw); i++ {
		switch c := raw[i]; {
		case c == '\\':
			i++
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '\'' || c == '"':
			quote = c
		case c == '{' && (i == 0 || raw[i-1] != '$'):
			inside, after, ends := strings.Cut(raw[i+1:], "}")
			parts := strings.Split(inside, ",")
			if !ends || len(parts) < 2 || len(parts) > maxBraces || strings.ContainsAny(inside, "{$'\"`\\") {
				return []string{raw}
			}
			for at, part := range parts {
				parts[at] = raw[:i] + part + after
			}
			return parts
		}
	}
	return []string{raw}
}

// source notes a word behind "." or "source".
func (r *reader) source(w word) {
	if w.known && r.dir != "" && w.text != "" && !filepath.IsAbs(w.text) {
		w.text = r.dir + "/" + w.text
	}
	if !w.known || !filepath.IsAbs(w.text) {
		return
	}
	one := Source{Path: filepath.Clean(w.text), Pattern: w.pattern, Wide: w.wide}
	dir, name := filepath.Split(one.Path)
	one.Deep = one.Pattern && strings.Contains(dir, "*")
	one.Pattern = one.Pattern && strings.Contains(name, "*")
	// A home directory, and what holds one, has files of all kinds.
	before, _, _ := strings.Cut(one.Path, "*")
	if all := strings.Trim(strings.TrimPrefix(name, "."), "*") == ""; all && (one.Wide || one.Deep) &&
		strings.HasPrefix(r.home+"/", before[:strings.LastIndexByte(before, '/')+1]) {
		return
	}
	if !slices.Contains(r.found, one) {
		r.found = append(r.found, one)
	}
}

// assigns notes NAME=VALUE.
func (r *reader) assigns(w word) bool {
	name, value, is := strings.Cut(w.text, "=")
	if !is || name == "" || nameLength(name) != len(name) {
		return false
	}
	delete(r.variables, name)
	delete(r.loops, name)
	if w.known && !w.pattern && w.loop == "" {
		r.variables[name] = value
		r.named(name, value)
	}
	return true
}

// named notes what shells read because a variable has a value.
func (r *reader) named(name, value string) {
	switch name {
	case "ENV", "BASH_ENV":
		r.source(word{text: value, known: true})
	case "ZDOTDIR":
		for _, file := range []string{".zshenv", ".zprofile", ".zshrc", ".zlogin", ".zlogout"} {
			r.source(word{text: value + "/" + file, known: true})
		}
	}
}

// word reads the first word of a text. whole is false if its quotation does not
// end there.
func (r *reader) word(text string) (w word, rest string, whole bool) {
	w.known = true
	var out strings.Builder
	quoted := false  // in double quotes
	literal := false // it has "*" for itself
	end := func() word {
		w.text = out.String()
		w.known = w.known && (!w.pattern || !literal)
		return w
	}
	for i := 0; i < len(text); {
		c := text[i]
		literal = literal || c == '*' && quoted
		switch {
		case c == '"':
			quoted = !quoted
			i++
		case c == '\'' && !quoted:
			inside, _, ends := strings.Cut(text[i+1:], "'")
			if !ends {
				return word{}, "", false
			}
			literal = literal || strings.Contains(inside, "*")
			out.WriteString(inside)
			i += len(inside) + 2
		case c == '\\':
			if i+1 == len(text) {
				return word{}, "", false
			}
			if quoted && strings.IndexByte("\"\\$`", text[i+1]) < 0 {
				out.WriteByte(c)
			}
			literal = literal || text[i+1] == '*'
			out.WriteByte(text[i+1])
			i += 2
		case c == '$' && w.loop == "" && r.loopVariable(text[i:]) != "":
			w.loop, w.lead = r.loopVariable(text[i:]), out.String()
			i += len(w.loop) + 1
			if text[i-len(w.loop)] == '{' {
				i += 2
			}
		case c == '$':
			value, length, known := r.variable(text[i:])
			out.WriteString(value)
			w.known = w.known && known
			i += length
		case c == '`':
			w.known = false
			i++
		case !quoted && strings.IndexByte(" \t;&|()<>", c) >= 0:
			return end(), text[i:], true
		case !quoted && c == '~' && (i == 0 || text[i-1] == '=') && strings.HasPrefix(text[i:], "~/"):
			out.WriteString(r.variables["HOME"])
			i++
		case !quoted && c == '*':
			w.pattern = true
			out.WriteByte(c)
			i++
		case !quoted && (c == '?' || c == '[' && bracketLength(text[i:]) > 0):
			w.pattern, w.wide = true, true
			out.WriteByte('*')
			i += max(1, bracketLength(text[i:]))
		case !quoted && strings.IndexByte("[{~", c) >= 0:
			w.known = false
			out.WriteByte(c)
			i++
		default:
			out.WriteByte(c)
			i++
		}
	}
	return end(), "", !quoted
}

// bracketLength is the length of "[abc]" at the beginning of a text; 0 if that is
// something else, such as the command "[".
func bracketLength(text string) int {
	if text[0] != '[' || len(text) < 2 {
		return 0
	}
	end := strings.IndexAny(text[2:], "] \t/;&|()<>\"'`$\\")
	if end < 0 || text[2+end] != ']' || strings.IndexByte(" \t/;&|()<>\"'`$\\", text[1]) >= 0 {
		return 0
	}
	return 2 + end + 1
}

// loopVariable is the variable of "for" that "$NAME" or "${NAME}" at the beginning
// of a text means; "" if it means none.
func (r *reader) loopVariable(text string) string {
	rest, braced := strings.CutPrefix(text[1:], "{")
	name := rest[:nameLength(rest)]
	_, assigned := r.variables[name]
	if _, loops := r.loops[name]; !loops || assigned || braced && !strings.HasPrefix(rest[len(name):], "}") {
		return ""
	}
	return name
}

// variable reads "$NAME", "${NAME}" or "${NAME:-VALUE}", also with "-", ":=" or "=",
// and says what it stands for, and how long it is. The last stands for VALUE if the
// text has not assigned the variable: what the session's environment holds is not
// asked.
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
	usual := strings.TrimPrefix(rest, ":")
	if usual == "" || usual[0] != '-' && usual[0] != '=' {
		return "", 2 + n, false
	}
	skipped := len(rest) - len(usual) + 1
	usual = usual[1:]
	var out strings.Builder
	usualKnown := true
	for i := 0; i < len(usual); {
		switch c := usual[i]; c {
		case '}':
			if !known {
				value, known = out.String(), usualKnown
			}
			return value, 2 + n + skipped + i + 1, known
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
