package messages

import (
	"regexp"
	"strings"
	"testing"
)

// syntax is what has to be known of a language to find its strings.
type syntax struct {
	comment           string
	open, close       string // of a comment over several lines
	quotes            string
	join              string // puts two strings together
	longString, regex bool   // Lua's [[…]]; /…/
}

var (
	typeScript = syntax{comment: "//", open: "/*", close: "*/", quotes: "\"'`", join: "+", regex: true}
	lua        = syntax{comment: "--", open: "--[[", close: "]]", quotes: `"'`, join: "..", longString: true}
)

func typeScriptMessages(_ *testing.T, name string, source []byte) []message {
	return scriptMessages(name, string(source), typeScript)
}

func luaMessages(_ *testing.T, name string, source []byte) []message {
	return scriptMessages(name, string(source), lua)
}

// scriptMessages collects the prose of a script, as goMessages does. Strings
// that follow each other with nothing but a join between are one text.
func scriptMessages(name, source string, s syntax) []message {
	var found []message
	for rest, at := source, 0; rest != ""; rest = source[at:] {
		length := s.skipped(source, at)
		if length == 0 {
			var text string
			if text, length = s.literal(rest); length > 0 {
				before := source[:at]
				for {
					more, longer := s.joined(source[at+length:])
					if longer == 0 {
						break
					}
					text, length = text+more, length+longer
				}
				if isProse(text) {
					found = append(found, message{name, strings.Count(before, "\n") + 1, takes(before), text})
				}
			}
		}
		at += max(length, 1)
	}
	return found
}

// skipped is the length of the comment or regular expression at a place.
func (s syntax) skipped(source string, at int) int {
	rest := source[at:]
	switch {
	case strings.HasPrefix(rest, s.open):
		return lengthTo(rest, s.close)
	case strings.HasPrefix(rest, s.comment):
		return lengthTo(rest, "\n")
	case s.regex && rest[0] == '/' && beforeRegex.MatchString(source[max(0, at-20):at]):
		return len(regexLiteral.FindString(rest))
	}
	return 0
}

var (
	beforeRegex  = regexp.MustCompile(`([=(,:\[!&|?{};>]|return)\s*$`)
	regexLiteral = regexp.MustCompile(`^/(\\.|\[(\\.|[^\]\n])*\]|[^/\n\\\[])+/\w*`)
)

// lengthTo is the length of a text up to the end of its first end.
func lengthTo(text, end string) int {
	if i := strings.Index(text, end); i >= 0 {
		return i + len(end)
	}
	return len(text)
}

// literal is the string that a text begins with, and its length in the source.
func (s syntax) literal(rest string) (string, int) {
	if s.longString && strings.HasPrefix(rest, "[[") {
		length := lengthTo(rest, "]]")
		return rest[2:max(2, length-2)], length
	}
	if !strings.Contains(s.quotes, rest[:1]) {
		return "", 0
	}
	var text strings.Builder
	for i := 1; i < len(rest); i++ {
		switch {
		case rest[i] == rest[0]:
			return text.String(), i + 1
		case rest[i] == '\\' && i+1 < len(rest):
			i++
			text.WriteString(unescaped(rest[i]))
		case rest[0] == '`' && strings.HasPrefix(rest[i:], "${"):
			i += braced(rest[i+1:])
			text.WriteString("%s")
		default:
			text.WriteByte(rest[i])
		}
	}
	return "", 0
}

func unescaped(char byte) string {
	if char == 'n' || char == 'r' {
		return "\n"
	}
	return string(char)
}

// braced is the length of a text in braces that may hold others.
func braced(text string) int {
	depth := 0
	for i := range len(text) {
		switch text[i] {
		case '{':
			depth++
		case '}':
			if depth--; depth == 0 {
				return i + 1
			}
		}
	}
	return len(text)
}

// joined is the string that is put behind another one.
func (s syntax) joined(rest string) (string, int) {
	after, found := strings.CutPrefix(strings.TrimLeft(rest, " \t\n"), s.join)
	if !found {
		return "", 0
	}
	after = strings.TrimLeft(after, " \t\n")
	if after == "" {
		return "", 0
	}
	text, length := s.literal(after)
	if length == 0 {
		return "", 0
	}
	return text, len(rest) - len(after) + length
}

var taker = regexp.MustCompile(`([\w.:]+)\s*(\(+\s*|[:=]\s*)$`)

// takes names the function or field that a string behind this source is for.
func takes(before string) string {
	if match := taker.FindStringSubmatch(before[max(0, len(before)-80):]); match != nil {
		return match[1]
	}
	return "other"
}

var jsonText = regexp.MustCompile(`^\s*"([^"]+)": "((\\.|[^"\\])*)"`)

// jsonMessages collects the prose of a JSON file with one value a line.
func jsonMessages(_ *testing.T, name string, source []byte) []message {
	var found []message
	for i, line := range strings.Split(string(source), "\n") {
		if match := jsonText.FindStringSubmatch(line); match != nil && isProse(match[2]) {
			text := strings.ReplaceAll(match[2], `\n`, "\n")
			found = append(found, message{name, i + 1, match[1], strings.ReplaceAll(text, `\"`, `"`)})
		}
	}
	return found
}
