// Package display makes untrusted text safe to show.
//
// A session or a repository chooses paths, process names, hosts and settings
// values. Shown raw, such text could move the cursor, forge a second line,
// reverse the text next to it, or become a link that runs a command. [Text] and
// [Quote] escape every such character, [Line] protects a whole message, and
// [JSON] a JSON text.
package display

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// MaxText is the maximum length of Text's result in characters.
const MaxText = 120

// MaxLine is the maximum length of Line's result in characters.
const MaxLine = 2000

// Text returns s as one line of at most MaxText characters, in which nothing
// moves a cursor, is invisible, or is Markdown or a link.
//
// It escapes the following, as Go string literals do: bytes that are not UTF-8;
// control characters and line ends; white space except a single plain blank;
// characters that change the direction of text, or have no shape or width;
// combining marks without a letter; backquotes, "<" and the backslash; and what
// makes "](" and "://" links, "$(" icons and "&x;" entities. A longer text
// loses its middle. Right-to-left letters stay, and so do tcp:// and tls://,
// which entries of settings begin with and nothing opens.
func Text(s string) string { return Shorten(Escape(s), MaxText) }

// Quote is Text in quotation marks, for use inside a sentence. It also escapes
// quotation marks and characters that look like one.
func Quote(s string) string {
	return `"` + Shorten(marks.Replace(Escape(s)), MaxText) + `"`
}

// QuoteWhole is Quote without the limit on the length. Of a text with more than
// 64 KiB even this has no middle, so callers bound the text.
func QuoteWhole(s string) string { return `"` + marks.Replace(Escape(s)) + `"` }

// marks are the quotation mark and the characters that look like it.
var marks = strings.NewReplacer(`"`, `\"`, "\u201c", `\u201c`, "\u201d", `\u201d`, "\u201e", `\u201e`, "\u201f",
	`\u201f`, "\u2033", `\u2033`,
	"\u02ba", `\u02ba`, "\u02ee", `\u02ee`, "\u3003", `\u3003`, "\uff02", `\uff02`)

// Escape is Text without the limit on the length.
func Escape(s string) string { return escape(s, true) }

// Line makes a whole sentence safe, whose values should be quoted already; it
// is the last defence for a value that is not. It escapes what Text escapes,
// except the backslash, the backquote, "<" and blanks, which our own sentences
// use. A safe line is returned unchanged.
func Line(s string) string { return Shorten(escape(s, false), MaxLine) }

// escape escapes what is never safe, and if all is set, also what is special in
// Markdown.
func escape(s string, all bool) string {
	var b strings.Builder
	if len(s) > scanned {
		return escape(s[:scanned/2], all) + "…" + escape(s[len(s)-scanned/2:], all)
	}
	piled := maxMarks // combining marks on the last letter
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		before := s[:i]
		i += size
		switch {
		case unicode.In(r, unicode.Mn, unicode.Me):
			piled++
		case unicode.In(r, unicode.L, unicode.N, unicode.Mc):
			piled = 0
		default:
			piled = maxMarks
		}
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, `\x%02x`, s[i-1])
		case r == '\\' && all:
			b.WriteString(`\\`)
		case all && (r == '`' || r == '<' || r == ' ' && strings.HasSuffix(before, " ")),
			r == '(' && (strings.HasSuffix(before, "]") || strings.HasSuffix(before, "$")),
			r == '/' && strings.HasSuffix(before, ":") && strings.HasPrefix(s[i:], "/") && !ofSettings(before),
			r == '&' && isEntity(s[i:]),
			piled > maxMarks || !visible(r):
			b.WriteString(escaped(r))
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// ofSettings reports whether a text ends with a scheme that entries of settings
// have, and not with a longer one.
func ofSettings(text string) bool {
	rest, is := strings.CutSuffix(text, "tcp:")
	if !is {
		rest, is = strings.CutSuffix(text, "tls:")
	}
	last, _ := utf8.DecodeLastRuneInString(rest)
	return is && (rest == "" || last == ' ' || last == '"' || last == '`')
}

// isEntity reports whether rest, the text after an "&", begins with an HTML
// entity.
func isEntity(rest string) bool {
	name := strings.TrimLeftFunc(rest, func(r rune) bool {
		return r == '#' || '0' <= r && r <= '9' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z'
	})
	return len(name) < len(rest) && strings.HasPrefix(name, ";")
}

// scanned bounds the bytes that are read. A path has at most 4096 (PATH_MAX),
// so only useless texts are cut here.
const scanned = 64 << 10

// maxMarks is how many combining marks may follow one letter. Written languages
// need two; more could cover the lines around it.
const maxMarks = 2

// visible reports whether a character has a shape and a width, or combines with
// the one before it. It is strconv.IsPrint without the ignorable characters and
// the blank symbols: a Braille pattern without dots, a note without a head, the
// object replacement character.
func visible(r rune) bool {
	switch r {
	case '\u2800', '\U0001d159', '\ufffc':
		return false
	}
	return unicode.IsPrint(r) && !unicode.In(r, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)
}

func escaped(r rune) string {
	switch r {
	case '\n':
		return `\n`
	case '\r':
		return `\r`
	case '\t':
		return `\t`
	}
	switch {
	case r < 0x80:
		return fmt.Sprintf(`\x%02x`, r)
	case r < 0x10000:
		return fmt.Sprintf(`\u%04x`, r)
	}
	return fmt.Sprintf(`\U%08x`, r)
}

// Shorten removes the middle of a text that has more than limit characters, and
// puts "…" there. It never splits an escape that Escape wrote.
func Shorten(s string, limit int) string {
	if utf8.RuneCountInString(s) <= limit {
		return s
	}
	parts := units(s)
	head, tail := "", ""
	for first, last, length := 0, len(parts)-1, 1; first <= last; {
		if utf8.RuneCountInString(head) <= utf8.RuneCountInString(tail) {
			length += utf8.RuneCountInString(parts[first])
			if length > limit {
				break
			}
			head += parts[first]
			first++
		} else {
			length += utf8.RuneCountInString(parts[last])
			if length > limit {
				break
			}
			tail = parts[last] + tail
			last--
		}
	}
	return head + "…" + tail
}

// units splits an escaped text into escapes and characters with their marks.
func units(s string) []string {
	var list []string
	for len(s) > 0 {
		var size int
		if s[0] == '\\' && len(s) > 1 {
			size = min(len(s), map[byte]int{'x': 4, 'u': 6, 'U': 10}[s[1]])
			size = max(size, 2)
		} else {
			_, size = utf8.DecodeRuneInString(s)
			for {
				r, more := utf8.DecodeRuneInString(s[size:])
				if !unicode.In(r, unicode.Mn, unicode.Me) {
					break
				}
				size += more
			}
		}
		list = append(list, s[:size])
		s = s[size:]
	}
	return list
}
