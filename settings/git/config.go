package git

import "strings"

// configValues lists the values of a key in a file of git-config(1)'s format,
// in all sections of a name, whatever their subsections. section and key are in
// lower case. It reads what it can and does not validate the file.
func configValues(content, section, key string) []string {
	var values []string
	inside := false
	for _, line := range joinedLines(content) {
		line = strings.TrimSpace(line)
		if rest, ok := strings.CutPrefix(line, "["); ok {
			header, after := cutHeader(rest)
			name, _, _ := strings.Cut(header, " ")
			name, _, _ = strings.Cut(name, ".")
			inside = strings.EqualFold(name, section)
			line = strings.TrimSpace(after) // a key may follow on the header's line
		}
		name, value, ok := strings.Cut(line, "=")
		if inside && ok && strings.EqualFold(strings.TrimSpace(name), key) {
			values = append(values, unquote(value))
		}
	}
	return values
}

// joinedLines splits a text at line ends. A line that ends in an unescaped
// backslash continues on the next.
func joinedLines(content string) []string {
	var lines []string
	var begun strings.Builder
	for line := range strings.Lines(content) {
		line = strings.TrimRight(line, "\r\n")
		text := strings.TrimRight(line, `\`)
		if backslashes := len(line) - len(text); backslashes%2 == 1 {
			begun.WriteString(line[:len(line)-1])
			continue
		}
		lines = append(lines, begun.String()+line)
		begun.Reset()
	}
	return append(lines, begun.String())
}

// cutHeader splits a section header at its closing bracket. A bracket in quotes
// does not close it.
func cutHeader(text string) (header, after string) {
	quoted := false
	for i := 0; i < len(text); i++ {
		switch {
		case text[i] == '\\':
			i++
		case text[i] == '"':
			quoted = !quoted
		case text[i] == ']' && !quoted:
			return text[:i], text[i+1:]
		}
	}
	return text, ""
}

// unquote removes quotes, escapes and comments from a value.
func unquote(text string) string {
	var value strings.Builder
	quoted, kept := false, 0 // blanks count up to here
	text = strings.TrimSpace(text)
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch {
		case c == '"':
			quoted = !quoted
			kept = value.Len()
			continue
		case c == '\\' && i+1 < len(text):
			i++
			c = text[i]
			switch c {
			case 'n':
				c = '\n'
			case 't':
				c = '\t'
			case 'b':
				c = '\b'
			}
			value.WriteByte(c)
			kept = value.Len()
			continue
		case !quoted && (c == '#' || c == ';'):
			i = len(text)
			continue
		}
		value.WriteByte(c)
		if quoted || c != ' ' && c != '\t' {
			kept = value.Len()
		}
	}
	return value.String()[:kept]
}
