package printed

import (
	"strings"
	"unicode/utf8"
)

// plain is a line as a terminal shows it, roughly: without escape sequences,
// and only what follows the last carriage return, which overwrites the rest. It
// is "" if the line is not UTF-8.
func plain(line []byte) string {
	var text strings.Builder
	for i := 0; i < len(line); {
		switch b := line[i]; {
		case b == 0x1b:
			i += escape(line[i:])
		case b < ' ' && b != '\t' && b != '\r' || b == 0x7f:
			i++
		default:
			text.WriteByte(b)
			i++
		}
	}
	shown := strings.TrimRight(text.String(), "\r \t")
	if i := strings.LastIndexByte(shown, '\r'); i >= 0 {
		shown = shown[i+1:]
	}
	if !utf8.ValidString(shown) {
		return ""
	}
	return shown
}

// escape is the length of the escape sequence that data begins with: CSI … final
// byte, OSC and other strings up to BEL or ST, or two characters (ECMA-48).
func escape(data []byte) int {
	if len(data) < 2 {
		return len(data)
	}
	switch data[1] {
	case '[':
		for i := 2; i < len(data); i++ {
			if data[i] >= 0x40 && data[i] <= 0x7e {
				return i + 1
			}
		}
		return len(data)
	case ']', 'P', '_', '^', 'X':
		for i := 2; i < len(data); i++ {
			if data[i] == 0x07 {
				return i + 1
			}
			if data[i] == 0x1b && i+1 < len(data) && data[i+1] == '\\' {
				return i + 2
			}
		}
		return len(data)
	case '(', ')', '*', '+', '#', '%':
		return min(3, len(data))
	}
	return 2
}
