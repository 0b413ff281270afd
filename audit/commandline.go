package audit

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// maxDepth bounds command lines within command lines. What is deeper is
// redacted whole.
const maxDepth = 6

// mark stands around the number of an expansion within the value of a word. No
// argument of a program has that character.
const mark = "\x00"

// piece is a word of a command line, or what stands between words.
type piece struct {
	source string // as it is written; within it, what is expanded is redacted
	value  string // of a word: without quotes, and with marks for what is expanded
	word   bool
}

// simple is a command of a line, or a part of a pipeline.
type simple struct {
	start, end int   // pieces
	here       []int // the words that are its standard input
	piped      bool  // its output goes to the next one
}

// splitter reads a command line as shells of the family of sh do, but for what
// decides only about execution. It runs over each character once.
type splitter struct {
	judge *judge
	text  string
	at    int
	until byte // what ends it: 0 for the end of the text
	depth int

	pieces   []piece
	commands []simple
	begin    int // first piece of the current command
	here     []int
	docs     []document // that begin after the current line
	// broken is the number of the first command that cannot be read; -1 if there
	// is none.
	broken int
}

// document is what follows "<<".
type document struct {
	end  string
	tabs bool // "<<-": the lines may be indented
}

// line redacts a command line. sure is true if it is one: then nothing is kept
// from a command on that cannot be read. Otherwise commands of unknown programs
// can be any text.
func (j *judge) line(text string, sure bool, depth int) string {
	if depth > maxDepth {
		return redacted
	}
	s := &splitter{judge: j, text: text, depth: depth, broken: -1}
	s.run()
	return s.render(sure, sure)
}

func (s *splitter) run() {
	parentheses := 0
	for s.at < len(s.text) {
		c := s.text[s.at]
		switch {
		case c == s.until && (c != ')' || parentheses == 0):
			s.end(false)
			s.at++
			return
		case c == '\n':
			s.raw(1)
			s.end(false)
			s.documents()
		case c == ' ' || c == '\t' || c == '\r':
			s.raw(1)
		case strings.HasPrefix(s.text[s.at:], "\\\n"):
			s.raw(2)
		case c == '#' && s.startsWord():
			line, _, _ := strings.Cut(s.text[s.at:], "\n")
			s.add(piece{source: s.judge.text(line)})
			s.at += len(line)
		case c == '&' && s.at+1 < len(s.text) && s.text[s.at+1] == '>':
			s.raw(1)
		case c == ';' || c == '&' || c == '|':
			n := 1
			for s.at+n < len(s.text) && n < 3 && strings.IndexByte(";&|", s.text[s.at+n]) >= 0 {
				n++
			}
			pipe := s.text[s.at:s.at+n] == "|" || s.text[s.at:s.at+n] == "|&"
			s.raw(n)
			s.end(pipe)
		case c == '(' && strings.HasPrefix(s.text[s.at:], "((") && s.arithmetic():
		case c == '(':
			parentheses++
			s.raw(1)
			s.end(false)
		case c == ')':
			parentheses = max(0, parentheses-1)
			s.raw(1)
			s.end(false)
		case c == '<' || c == '>':
			s.redirect()
		default:
			s.word()
		}
	}
	if s.until != 0 {
		s.fail()
	}
	s.end(false)
}

func (s *splitter) add(p piece) { s.pieces = append(s.pieces, p) }

// raw takes characters that are no part of a word.
func (s *splitter) raw(n int) {
	s.add(piece{source: s.text[s.at : s.at+n]})
	s.at += n
}

func (s *splitter) startsWord() bool {
	return s.at == 0 || strings.IndexByte(" \t\n;|&()", s.text[s.at-1]) >= 0
}

// end ends a command.
func (s *splitter) end(piped bool) {
	s.commands = append(s.commands, simple{start: s.begin, end: len(s.pieces), here: s.here, piped: piped})
	s.begin, s.here = len(s.pieces), nil
}

func (s *splitter) fail() {
	if s.broken < 0 {
		s.broken = len(s.commands)
	}
}

// arithmetic takes "((…))" whole.
func (s *splitter) arithmetic() bool {
	const most = 256
	line, _, _ := strings.Cut(s.text[s.at:min(len(s.text), s.at+most)], "\n")
	n := strings.Index(line, "))")
	if n < 0 {
		return false
	}
	s.raw(n + 2)
	return true
}

func (s *splitter) redirect() {
	rest := s.text[s.at:]
	n := 1
	for n < len(rest) && n < 3 && strings.IndexByte("<>&|", rest[n]) >= 0 {
		n++
	}
	switch {
	case len(rest) > 1 && rest[1] == '(': // a process as a file
		s.at += 2
		s.add(piece{source: rest[:2] + s.nested(')')})
	case strings.HasPrefix(rest, "<<<"):
		s.raw(3)
		for s.at < len(s.text) && (s.text[s.at] == ' ' || s.text[s.at] == '\t') {
			s.raw(1)
		}
		if s.at < len(s.text) && s.text[s.at] != '\n' && s.text[s.at] != s.until {
			s.here = append(s.here, len(s.pieces))
			s.word()
		}
	case strings.HasPrefix(rest, "<<"):
		s.raw(2)
		tabs := s.at < len(s.text) && s.text[s.at] == '-'
		if tabs {
			s.raw(1)
		}
		for s.at < len(s.text) && (s.text[s.at] == ' ' || s.text[s.at] == '\t') {
			s.raw(1)
		}
		start := len(s.pieces)
		if s.at < len(s.text) && strings.IndexByte("\n;|&()<>", s.text[s.at]) < 0 {
			s.word()
			s.pieces[start].word = false
			s.docs = append(s.docs, document{end: s.pieces[start].value, tabs: tabs})
		}
	default:
		s.raw(n)
	}
}

// documents takes what the commands of the line before are given as input.
func (s *splitter) documents() {
	for _, doc := range s.docs {
		start := s.at
		body, found := len(s.text), false
		for s.at < len(s.text) && !found {
			line, _, more := strings.Cut(s.text[s.at:], "\n")
			body = s.at
			s.at += len(line)
			if more {
				s.at++
			}
			if doc.tabs {
				line = strings.TrimLeft(line, "\t")
			}
			if found = line == doc.end; !found {
				body = s.at
			}
		}
		if !found {
			s.fail()
		}
		s.add(piece{source: s.judge.prose(s.text[start:body], s.depth+1) + s.text[body:s.at]})
	}
	s.docs = nil
	if s.begin < len(s.pieces) {
		s.end(false)
	}
}

// nested takes the command line of a substitution up to its end, and returns it
// redacted.
func (s *splitter) nested(until byte) string {
	if s.depth >= maxDepth {
		s.fail()
		s.at = len(s.text)
		return redacted
	}
	inner := &splitter{judge: s.judge, text: s.text[s.at:], until: until, depth: s.depth + 1, broken: -1}
	inner.run()
	text := inner.render(false, true)
	s.at += inner.at
	if inner.broken >= 0 {
		s.fail()
	} else {
		text += string(until)
	}
	return text
}

// word takes a word with its quotes.
func (s *splitter) word() {
	var source, value strings.Builder
	start := s.at
	for s.at < len(s.text) && (s.at == start || !s.endsWord()) {
		switch c := s.text[s.at]; {
		case c == '\\':
			_, size := utf8.DecodeRuneInString(s.text[s.at+1:])
			source.WriteString(s.text[s.at : s.at+1+size])
			if s.text[s.at+1:s.at+1+size] != "\n" {
				value.WriteString(s.text[s.at+1 : s.at+1+size])
			}
			s.at += 1 + size
		case c == '\'':
			body, _, closed := strings.Cut(s.text[s.at+1:], "'")
			s.quoted(&source, &value, body, body, 1, closed)
		case strings.HasPrefix(s.text[s.at:], "$'"):
			body, closed := ansi(s.text[s.at+2:])
			s.quoted(&source, &value, body, unescape(body), 2, closed)
		case c == '"' || strings.HasPrefix(s.text[s.at:], `$"`):
			s.double(&source, &value)
		case c == '$' || c == '`':
			s.expansion(&source, &value)
		default:
			source.WriteByte(c)
			value.WriteByte(c)
			s.at++
		}
	}
	s.add(piece{source: source.String(), value: value.String(), word: true})
}

func (s *splitter) endsWord() bool {
	c := s.text[s.at]
	return strings.IndexByte(" \t\r\n;|&()<>", c) >= 0 || c == s.until
}

// quoted takes text in quotes that open with so many characters.
func (s *splitter) quoted(source, value *strings.Builder, body, decoded string, open int, closed bool) {
	n := open + len(body)
	if closed {
		n++
	} else {
		s.fail()
	}
	source.WriteString(s.text[s.at : s.at+n])
	value.WriteString(strings.ReplaceAll(decoded, mark, "\ufffd"))
	s.at += n
}

// double takes text in double quotes.
func (s *splitter) double(source, value *strings.Builder) {
	if s.text[s.at] == '$' {
		source.WriteByte('$')
		s.at++
	}
	source.WriteByte('"')
	s.at++
	for s.at < len(s.text) {
		switch c := s.text[s.at]; {
		case c == '"':
			source.WriteByte('"')
			s.at++
			return
		case c == '\\' && s.at+1 < len(s.text):
			next := s.text[s.at+1]
			source.WriteString(s.text[s.at : s.at+2])
			switch {
			case next == '\n':
			case strings.IndexByte("$`\"\\", next) >= 0:
				value.WriteByte(next)
			default:
				value.WriteString(s.text[s.at : s.at+2])
			}
			s.at += 2
		case c == '$' || c == '`':
			s.expansion(source, value)
		default:
			source.WriteByte(c)
			value.WriteByte(c)
			s.at++
		}
	}
	s.fail()
}

// expansion takes what a shell puts the value of in its place. The value of the
// word has a mark for it, and the judge its redacted text.
func (s *splitter) expansion(source, value *strings.Builder) {
	rest := s.text[s.at:]
	var text string
	switch {
	case rest[0] == '`':
		s.at++
		text = "`" + s.nested('`')
	case strings.HasPrefix(rest, "$(("):
		body, _, closed := strings.Cut(rest, "))")
		if !closed {
			s.fail()
			body, text = rest, redacted
			s.at += len(body)
			break
		}
		text = body + "))"
		s.at += len(text)
	case strings.HasPrefix(rest, "$("):
		s.at += 2
		text = "$(" + s.nested(')')
	case strings.HasPrefix(rest, "${"):
		body, _, closed := strings.Cut(rest, "}")
		if !closed {
			s.fail()
		} else {
			body += "}"
		}
		s.at += len(body)
		text = s.judge.parameter(body)
	default:
		n := 1
		for n < len(rest) && isNameByte(rest[n]) {
			n++
		}
		if n == 1 && len(rest) > 1 && strings.IndexByte("@*#?$!-", rest[1]) >= 0 {
			n = 2
		}
		if n == 1 { // a dollar sign
			source.WriteByte('$')
			value.WriteByte('$')
			s.at++
			return
		}
		text = rest[:n]
		s.at += n
	}
	source.WriteString(text)
	value.WriteString(mark + strconv.Itoa(len(s.judge.expansions)) + mark)
	s.judge.expansions = append(s.judge.expansions, text)
}

func isNameByte(c byte) bool {
	return c == '_' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}

// render returns the line with the words that the judge has changed. whole is
// true if nothing is kept of what cannot be read, and sure if it is no other
// text.
func (s *splitter) render(whole, sure bool) string {
	var line, out strings.Builder
	other := false // whether out is text of unknown commands
	flush := func() {
		if other {
			line.WriteString(s.judge.text(out.String()))
		} else {
			line.WriteString(out.String())
		}
		out.Reset()
	}
	for n, command := range s.commands {
		if whole && n == s.broken {
			flush()
			return line.String() + redacted
		}
		pieces := s.pieces[command.start:command.end]
		var words []string
		for _, p := range pieces {
			if p.word {
				words = append(words, p.value)
			}
		}
		if now := !sure && (len(words) == 0 || !known()[base(words[0])]); now != other {
			flush()
			other = now
		}
		judged := s.judge.command(words, s.depth)
		if command.piped && n+1 < len(s.commands) && prints(words) && s.readsSecret(s.commands[n+1]) {
			for i := 1; i < len(judged); i++ {
				if !strings.HasPrefix(words[i], "-") && !isExpanded(words[i]) {
					judged[i] = redacted
				}
			}
		}
		reads := len(command.here) > 0 && s.readsSecret(command)
		for i, p := range pieces {
			if !p.word {
				out.WriteString(p.source)
				continue
			}
			now := judged[0]
			judged = judged[1:]
			if reads && command.here[0] == command.start+i && !isExpanded(p.value) {
				now = redacted
			}
			if now == p.value {
				out.WriteString(p.source)
			} else {
				out.WriteString(quote(s.judge.expand(now)))
			}
		}
	}
	flush()
	return line.String()
}

// prints reports whether a command prints its arguments.
func prints(words []string) bool {
	return len(words) > 0 && (base(words[0]) == "echo" || base(words[0]) == "printf")
}

// readsSecret reports whether a command reads a secret from its standard input.
func (s *splitter) readsSecret(c simple) bool {
	sudo := false
	for _, p := range s.pieces[c.start:c.end] {
		switch name := base(p.value); {
		case !p.word:
		case name == "sudo", name == "doas":
			sudo = true
		case sudo && isCluster(p.value, "S"), takers.has(name):
			return true
		case strings.HasPrefix(p.value, "-") && containsAny(p.value, []string{"pass", "token"}):
			return true
		}
	}
	return false
}
