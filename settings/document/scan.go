package document

import "bytes"

// maxDepth bounds the nesting of a settings file. Real ones have five levels;
// the parser recurses without a bound of its own, and four million brackets
// would overflow the stack, which Go cannot recover from.
const maxDepth = 500

// outline is what can be said of a text before it is parsed.
type outline struct {
	// empty: there is nothing but white space and comments.
	empty bool
	// tooDeep is the offset of the bracket that exceeds maxDepth, or -1.
	tooDeep int
}

// scan skips strings and comments exactly as the parser does. Where the text is
// malformed the two may disagree only beyond the place where the parser stops.
func scan(data []byte) outline {
	result := outline{empty: true, tooDeep: -1}
	depth := 0
	for i := 0; i < len(data); i++ {
		switch c := data[i]; c {
		case ' ', '\t', '\r', '\n':
			continue
		case '/':
			if end := commentEnd(data, i); end > 0 {
				i = end - 1
				continue
			}
		case '"':
			i = stringEnd(data, i)
		case '{', '[':
			depth++
			if depth > maxDepth && result.tooDeep < 0 {
				result.tooDeep = i
			}
		case '}', ']':
			depth--
		}
		result.empty = false
	}
	return result
}

// commentEnd returns the offset behind the comment that starts at i, or 0 where
// none starts or it does not end.
func commentEnd(data []byte, i int) int {
	rest := data[i:]
	switch {
	case bytes.HasPrefix(rest, []byte("//")):
		if n := bytes.IndexByte(rest, '\n'); n >= 0 {
			return i + n + 1
		}
		return len(data)
	case bytes.HasPrefix(rest, []byte("/*")):
		if n := bytes.Index(rest[2:], []byte("*/")); n >= 0 {
			return i + 2 + n + 2
		}
	}
	return 0
}

// stringEnd returns the offset of the closing quote of the string that starts
// at i, or of the text's last byte.
func stringEnd(data []byte, i int) int {
	for i++; i < len(data); i++ {
		switch data[i] {
		case '\\':
			i++
		case '"':
			return i
		}
	}
	return len(data) - 1
}
