package acp

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// Bounds of a message. Parsers of editors and agents have such bounds, too, and
// differ in what they do there.
const (
	maxDepth   = 100     // of objects and arrays in each other
	maxMembers = 1 << 17 // of all objects that are open at one place
	maxNumber  = 64      // bytes of a number
)

// What parsers may read in different ways, or not at all. No error has text of
// the message: it goes to the log.
var (
	errSyntax  = errors.New("it is no JSON")
	errDepth   = errors.New("it is nested too deeply")
	errMany    = errors.New("an object has too many members")
	errTooLong = fmt.Errorf("it has more than %d MiB", maxLine>>20)
	errTwice   = errors.New("a key is there twice")
	errKey     = errors.New("a key has NUL, or half a surrogate pair")
	errCase    = errors.New("a key of JSON-RPC is written in another case")
	errNumber  = errors.New("a number is too large")
)

// strict reads a JSON text as no two parsers can differ about it, and writes it
// anew: without blanks, each string in one form. So what passes is ours, and
// whoever reads it reads what was checked here.
type strict struct {
	in   []byte
	at   int
	out  []byte
	keys []span // of the objects that are open, in out

	// leave, if it is not nil, says which members are left out. depth is 1 for
	// those of the message.
	leave func(key string, depth int) bool
	// safe, if it is not nil, returns what takes the place of a value.
	safe func(key string, value []byte) []byte
	left bool // something was left out or replaced

	bad error // the first thing that may not pass; reading goes on
	// What can be told of a message that may not pass, for an answer.
	ids    [][]byte
	called bool // it has a method
}

// span is a part of the output.
type span struct{ from, to int }

// fail notes what may not pass, though it can be read.
func (s *strict) fail(err error) {
	if s.bad == nil {
		s.bad = err
	}
}

// read reads all of the text. The output counts only without an error.
func (s *strict) read() error {
	s.out = make([]byte, 0, len(s.in)+64) // mostly it becomes shorter
	err := s.value(0)
	if err == nil {
		if s.blanks(); s.at < len(s.in) {
			err = errSyntax
		}
	}
	if s.bad != nil {
		return s.bad
	}
	return err
}

func (s *strict) blanks() {
	for s.at < len(s.in) && strings.IndexByte(" \t\r\n", s.in[s.at]) >= 0 {
		s.at++
	}
}

// next skips blanks and returns the byte behind them; 0 at the end.
func (s *strict) next() byte {
	if s.blanks(); s.at < len(s.in) {
		return s.in[s.at]
	}
	return 0
}

func (s *strict) value(depth int) error {
	if len(s.out) > maxLine {
		return errTooLong
	}
	if depth > maxDepth {
		return errDepth
	}
	switch c := s.next(); {
	case c == '{':
		return s.object(depth + 1)
	case c == '[':
		return s.array(depth + 1)
	case c == '"':
		_, _, err := s.text()
		return err
	case c == '-' || c >= '0' && c <= '9':
		return s.number()
	}
	for _, word := range []string{"null", "true", "false"} {
		if bytes.HasPrefix(s.in[s.at:], []byte(word)) {
			s.at += len(word)
			s.out = append(s.out, word...)
			return nil
		}
	}
	return errSyntax
}

func (s *strict) array(depth int) error {
	s.at++
	s.out = append(s.out, '[')
	if s.next() == ']' {
		return s.end(']')
	}
	for {
		if err := s.value(depth); err != nil {
			return err
		}
		switch s.next() {
		case ',':
			s.at++
			s.out = append(s.out, ',')
		default:
			return s.end(']')
		}
	}
}

func (s *strict) end(c byte) error {
	if s.next() != c {
		return errSyntax
	}
	s.at++
	s.out = append(s.out, c)
	return nil
}

func (s *strict) object(depth int) error {
	s.at++
	s.out = append(s.out, '{')
	first, empty := len(s.keys), true
	for s.next() != '}' {
		member := len(s.out)
		if !empty {
			s.out = append(s.out, ',')
		}
		kept, err := s.member(depth)
		if err != nil {
			return err
		}
		if kept {
			empty = false
		} else {
			s.out, s.left = s.out[:member], true
		}
		if s.next() != ',' {
			break
		}
		if s.at++; s.next() == '}' {
			return errSyntax
		}
	}
	// Sorted, equal keys are neighbours. Each has one form, so they are equal if
	// their bytes are.
	keys := s.keys[first:]
	text := func(key span) []byte { return s.out[key.from:key.to] }
	slices.SortFunc(keys, func(a, b span) int { return bytes.Compare(text(a), text(b)) })
	for i := 1; i < len(keys); i++ {
		if bytes.Equal(text(keys[i-1]), text(keys[i])) {
			s.fail(errTwice)
		}
	}
	s.keys = s.keys[:first]
	return s.end('}')
}

// names are the members of a message.
var names = []string{"jsonrpc", "method", "id", "params", "result", "error"}

// member reads a key and its value. It returns false if both are left out.
func (s *strict) member(depth int) (kept bool, err error) {
	if s.next() != '"' {
		return false, errSyntax
	}
	from := len(s.out)
	key, odd, err := s.text()
	if err != nil {
		return false, err
	}
	if odd {
		s.fail(errKey)
	}
	s.keys = append(s.keys, span{from, len(s.out)})
	if len(s.keys) > maxMembers {
		return false, errMany
	}
	if s.next() != ':' {
		return false, errSyntax
	}
	s.at++
	s.out = append(s.out, ':')
	value := len(s.out)
	if err := s.value(depth); err != nil {
		return false, err
	}
	if depth == 1 {
		for _, name := range names {
			if key != name && strings.EqualFold(key, name) {
				s.fail(errCase)
			}
		}
		s.called = s.called || strings.EqualFold(key, "method")
		if key == "id" {
			s.ids = append(s.ids, bytes.Clone(s.out[value:]))
		}
	}
	if s.leave != nil && s.leave(key, depth) {
		s.keys = s.keys[:len(s.keys)-1]
		return false, nil
	}
	if s.safe != nil {
		if other := s.safe(key, s.out[value:]); other != nil {
			s.out, s.left = append(s.out[:value], other...), true
		}
	}
	return true, nil
}

func (s *strict) number() error {
	from := s.at
	digits := func() bool {
		start := s.at
		for s.at < len(s.in) && s.in[s.at] >= '0' && s.in[s.at] <= '9' {
			s.at++
		}
		return s.at > start
	}
	is := func(chars string) bool {
		if s.at < len(s.in) && strings.IndexByte(chars, s.in[s.at]) >= 0 {
			s.at++
			return true
		}
		return false
	}
	is("-")
	if !is("0") && !digits() || is(".") && !digits() {
		return errSyntax
	}
	if is("eE") {
		is("+-")
		if !digits() {
			return errSyntax
		}
	}
	text := s.in[from:s.at]
	if len(text) > maxNumber {
		s.fail(errNumber)
		text = text[:1]
	} else if _, err := strconv.ParseFloat(string(text), 64); err != nil {
		s.fail(errNumber) // infinite for some, and an error for others
	}
	s.out = append(s.out, text...)
	return nil
}

// maxKey bounds what text returns: no key that counts is longer.
const maxKey = 64

// text reads a string and writes it in its one form. It returns its value; "" if
// that is longer than any key which counts. Half a surrogate pair, which programs
// leave when they cut a text, becomes U+FFFD. odd says that there was one, or NUL,
// at which some parsers end a text.
func (s *strict) text() (value string, odd bool, err error) {
	s.at++
	from := len(s.out)
	s.out = append(s.out, '"')
	for {
		plain := s.at
		for s.at < len(s.in) && s.in[s.at] >= ' ' && s.in[s.at] < 0x7f && s.in[s.at] != '"' && s.in[s.at] != '\\' {
			s.at++
		}
		s.out = append(s.out, s.in[plain:s.at]...)
		switch {
		case s.at >= len(s.in):
			return "", false, errSyntax
		case len(s.out) > maxLine:
			return "", false, errTooLong
		}
		switch c := s.in[s.at]; {
		case c == '"':
			s.at++
			s.out = append(s.out, '"')
			if len(s.out)-from <= maxKey+len(`""`) {
				value = unquote(s.out[from:])
			}
			return value, odd, nil
		case c < ' ':
			return "", false, errSyntax
		case c == '\\':
			r, err := s.escape()
			if err != nil {
				return "", false, err
			}
			odd = odd || r <= 0
			s.write(r)
		default:
			r, size := utf8.DecodeRune(s.in[s.at:])
			if r == utf8.RuneError && size == 1 {
				return "", false, errSyntax
			}
			s.at += size
			s.write(r)
		}
	}
}

// escapes are the characters behind a backslash.
var escapes = map[byte]rune{
	'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t',
}

// escape reads an escaped character; -1 for half a surrogate pair.
func (s *strict) escape() (rune, error) {
	if s.at+1 >= len(s.in) {
		return 0, errSyntax
	}
	if r, known := escapes[s.in[s.at+1]]; known {
		s.at += 2
		return r, nil
	}
	first, ok := s.unit()
	if !ok {
		return 0, errSyntax
	}
	if !utf16.IsSurrogate(first) {
		return first, nil
	}
	before := s.at
	if second, ok := s.unit(); ok {
		if r := utf16.DecodeRune(first, second); r != utf8.RuneError {
			return r, nil
		}
	}
	s.at = before
	return -1, nil
}

// unit reads \uXXXX.
func (s *strict) unit() (rune, bool) {
	const size = len(`\uXXXX`)
	if s.at+size > len(s.in) || s.in[s.at] != '\\' || s.in[s.at+1] != 'u' {
		return 0, false
	}
	number, err := strconv.ParseUint(string(s.in[s.at+2:s.at+size]), 16, 16)
	if err != nil {
		return 0, false
	}
	s.at += size
	return rune(number), true
}

// write writes a character of a string in its one form. What some programs take
// for the end of a line is escaped.
func (s *strict) write(r rune) {
	switch {
	case r == '"' || r == '\\':
		s.out = append(s.out, '\\', byte(r))
	case r == '\n':
		s.out = append(s.out, `\n`...)
	case r < 0:
		s.out = append(s.out, "\ufffd"...)
	case r < ' ' || r == 0x7f || r == 0x85 || r == 0x2028 || r == 0x2029:
		const digits = "0123456789abcdef"
		s.out = append(s.out, '\\', 'u', digits[r>>12&15], digits[r>>8&15], digits[r>>4&15], digits[r&15])
	default:
		s.out = utf8.AppendRune(s.out, r)
	}
}

// quoted is a text as strict writes it.
func quoted(text string) []byte {
	s := strict{out: []byte{'"'}}
	for _, r := range text {
		s.write(r)
	}
	return append(s.out, '"')
}
