package audit

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// ansi returns what stands before the quote that ends $'…'.
func ansi(text string) (body string, closed bool) {
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '\'':
			return text[:i], true
		}
	}
	return text, false
}

// unescape replaces the escapes of $'…', with the value of each.
func unescape(body string) string {
	var out strings.Builder
	for len(body) > 0 {
		if body[0] != '\\' || len(body) == 1 {
			out.WriteByte(body[0])
			body = body[1:]
			continue
		}
		c := body[1]
		body = body[2:]
		if at := strings.IndexByte(`abefnrtvE\'"?`, c); at >= 0 {
			out.WriteByte("\a\b\x1b\f\n\r\t\v\x1b\\'\"?"[at])
			continue
		}
		base, most := 8, 3
		switch c {
		case 'x':
			base, most = 16, 2
		case 'u':
			base, most = 16, 4
		case 'U':
			base, most = 16, 8
		default:
			body = string(c) + body
		}
		n := 0
		for n < len(body) && n < most && strings.IndexByte("0123456789abcdefABCDEF"[:8+(base-8)/8*14], body[n]) >= 0 {
			n++
		}
		number, err := strconv.ParseUint(body[:n], base, 32)
		switch {
		case err != nil:
			out.WriteByte('\\')
			out.WriteByte(c)
			if n == 0 && base == 8 {
				body = body[1:]
			}
		case number >= utf8.RuneSelf && (c == 'u' || c == 'U'):
			out.WriteRune(rune(number))
		default:
			out.WriteByte(byte(number))
		}
		body = body[n:]
	}
	return out.String()
}

// expand puts expansions in the place of their marks.
func (j *judge) expand(value string) string {
	if !strings.Contains(value, mark) {
		return value
	}
	parts := strings.Split(value, mark)
	for i := 1; i < len(parts)-1; i += 2 {
		if n, err := strconv.Atoi(parts[i]); err == nil && n < len(j.expansions) {
			parts[i] = j.expansions[n]
		}
	}
	return strings.Join(parts, "")
}

// quote is a word in the form in which a person can read it.
func quote(word string) string {
	switch {
	case word != "" && !strings.ContainsAny(word, " \t\r\n'\"\\;&|<>()*`"):
		return word
	case !strings.Contains(word, "'"):
		return "'" + word + "'"
	}
	return `"` + strings.ReplaceAll(word, `"`, `\"`) + `"`
}
