package formats

import (
	"fmt"
	"strings"
)

// lines is a document of lines with names and values. Comments are left out.
type lines struct{ list []line }

type line struct {
	before, value, after string
	leaf                 []string // its path; nil for a line without a value
}

func (d *lines) text() ([]byte, error) {
	var out strings.Builder
	for _, l := range d.list {
		out.WriteString(l.before + l.value + l.after + "\n")
	}
	return []byte(out.String()), nil
}

func (d *lines) leaves() []leaf {
	var list []leaf
	for i := range d.list {
		if l := &d.list[i]; l.leaf != nil {
			list = append(list, leaf{path: l.leaf, value: l.value, set: func(made string) { l.value = made }})
		}
	}
	return list
}

func (d *lines) names() []string {
	var list []string
	for _, l := range d.list {
		list = append(list, l.leaf...)
		if l.leaf == nil {
			list = append(list, l.before)
		}
	}
	return list
}

// eachLine calls read with each line and its number, without the space around it.
func eachLine(data []byte, read func(number int, text string) error) error {
	number := 0
	for text := range strings.Lines(string(data)) {
		number++
		text = strings.TrimSuffix(strings.TrimSuffix(text, "\n"), "\r")
		if strings.ContainsFunc(text, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f || r > '~' }) {
			return fmt.Errorf("line %d has characters that programs read in different ways", number)
		}
		if err := read(number, text); err != nil {
			return err
		}
	}
	return nil
}

func notUnderstood(number int) error { return fmt.Errorf("line %d is not understood", number) }

// quoted splits a value from the quotation marks around it. A mark, a comment or an
// escape within it is refused: programs read those in different ways.
func (l *line) quoted(text string) bool {
	l.value = text
	if len(text) > 1 && strings.ContainsRune(`"'`, rune(text[0])) && text[len(text)-1] == text[0] {
		l.before, l.value, l.after = l.before+text[:1], text[1:len(text)-1], text[:1]
	}
	return !strings.ContainsAny(l.value, "\"'`\\;#")
}

// readNPM reads a .npmrc: NAME = VALUE, of which the first = counts.
func readNPM(data []byte) (document, error) {
	d := &lines{}
	err := eachLine(data, func(number int, text string) error {
		text = strings.TrimSpace(text)
		if text == "" || strings.ContainsRune("#;", rune(text[0])) {
			return nil
		}
		name, value, is := strings.Cut(text, "=")
		name = strings.TrimSpace(name)
		l := line{before: name + "=", leaf: []string{name}}
		if !is || name == "" || strings.ContainsAny(name, "\"'\\ \t") || !l.quoted(strings.TrimSpace(value)) {
			return notUnderstood(number)
		}
		d.list = append(d.list, l)
		return nil
	})
	return d, err
}

// readINI reads sections of NAME = VALUE or NAME: VALUE, as Python's configparser
// does. A line that begins with a space belongs to the value before it.
func readINI(data []byte) (document, error) {
	d := &lines{}
	section, name := "", ""
	err := eachLine(data, func(number int, text string) error {
		inner := strings.TrimSpace(text)
		switch {
		case inner == "" || strings.ContainsRune("#;", rune(inner[0])):
			return nil
		case text[0] == ' ' || text[0] == '\t':
			l := line{before: "    ", leaf: []string{section, name}}
			if name == "" || !l.quoted(inner) {
				return notUnderstood(number)
			}
			d.list = append(d.list, l)
			return nil
		case inner[0] == '[':
			closed := strings.HasSuffix(inner, "]") && strings.Count(inner, "]") == 1
			if !closed || strings.ContainsAny(inner, "\"'\\;#") {
				return notUnderstood(number)
			}
			section, name = inner[1:len(inner)-1], ""
			d.list = append(d.list, line{before: inner})
			return nil
		}
		at := strings.IndexAny(inner, "=:")
		if at <= 0 || section == "" {
			return notUnderstood(number)
		}
		name = strings.ToLower(strings.TrimSpace(inner[:at]))
		l := line{before: name + " = ", leaf: []string{section, name}}
		if strings.ContainsAny(name, "\"'\\;# \t") || !l.quoted(strings.TrimSpace(inner[at+1:])) {
			return notUnderstood(number)
		}
		d.list = append(d.list, l)
		return nil
	})
	return d, err
}

// readGit reads a file of git's credential helper "store": an address on each line.
func readGit(data []byte) (document, error) {
	d := &lines{}
	err := eachLine(data, func(number int, text string) error {
		if strings.TrimSpace(text) == "" {
			return nil
		}
		if !strings.Contains(text, "://") || strings.ContainsAny(text, " \t\"'\\#") {
			return notUnderstood(number)
		}
		d.list = append(d.list, line{value: text, leaf: []string{fmt.Sprintf("line %d", number)}})
		return nil
	})
	return d, err
}

// readNetrc reads words: machine NAME or default, then login, password and account
// with a word each (netrc(5)). Programs differ in quotation marks and macros, so
// those are refused.
func readNetrc(data []byte) (document, error) {
	d := &lines{}
	machine, pending := "", ""
	err := eachLine(data, func(number int, text string) error {
		if at := strings.Index(text, "#"); at == 0 || at > 0 && strings.TrimSpace(text[:at]) == "" {
			return nil
		}
		for _, word := range strings.Fields(text) {
			if strings.ContainsAny(word, "\"'\\#") {
				return notUnderstood(number)
			}
			switch {
			case pending == "machine":
				machine, pending = word, ""
				d.list = append(d.list, line{before: "machine " + word})
			case pending != "":
				l := line{before: "  " + pending + " ", value: word, leaf: []string{machine, pending}}
				d.list = append(d.list, l)
				pending = ""
			case word == "default":
				machine = word
				d.list = append(d.list, line{before: word})
			case word == "machine", machine != "" && (word == "login" || word == "password" || word == "account"):
				pending = word
			default: // such as macdef
				return notUnderstood(number)
			}
		}
		return nil
	})
	if err == nil && pending != "" {
		return nil, fmt.Errorf("ends with %s", pending)
	}
	return d, err
}
