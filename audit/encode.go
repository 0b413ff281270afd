package audit

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"unicode/utf8"

	"github.com/sandbox-sidecar/sandbox-sidecar/display"
)

const (
	// maxText bounds the bytes of one text, as they are in the line, and maxArgv
	// those of all arguments.
	maxText = 4 << 10
	maxArgv = 12 << 10
	// MaxTarget bounds those of a target, and of each file of a list.
	MaxTarget = 1 << 10
	// maxChanged bounds those of a path of a review, which has many.
	maxChanged = 256
	// omitted is in the place of arguments that were left out.
	omitted = "[…]"
)

// encode is the line of an event, without its end. What does not fit is cut.
func encode(event Event) ([]byte, error) {
	event.Argv = cut(Redact(event.Argv), maxArgv)
	for _, text := range []*string{&event.Project, &event.Dir, &event.Program, &event.Error, &event.Value} {
		*text = Shorten(*text, maxText)
	}
	for _, text := range []*string{&event.Target, &event.Process, &event.Detail} {
		*text = Shorten(*text, MaxTarget)
	}
	event.Targets, event.Files = shortenAll(event.Targets), shortenAll(event.Files)
	for i, change := range event.Changed {
		if i == 0 {
			event.Changed = append([]Change(nil), event.Changed...) // the caller keeps its own
		}
		event.Changed[i].Path = Shorten(change.Path, maxChanged)
	}
	text, err := json.Marshal(event)
	if text = display.JSON(text); err != nil {
		return nil, fmt.Errorf("write audit event: %w", err)
	}
	if len(text) > maxLine { // a list has more entries than any of ours
		event.Argv, event.Changed, event.Files, event.Targets = nil, nil, nil, nil
		event.More++
		if text, err = json.Marshal(event); err != nil {
			return nil, fmt.Errorf("write audit event: %w", err)
		}
		text = display.JSON(text)
	}
	return text, nil
}

func shortenAll(list []string) []string {
	var short []string
	for _, text := range list {
		short = append(short, Shorten(text, MaxTarget))
	}
	return short
}

// cut keeps the first arguments of a list, which it changes, and of each one at
// most a third of the bytes.
func cut(argv []string, most int) []string {
	rest := most
	for i, arg := range argv {
		argv[i] = Shorten(arg, min(most/3, rest))
		if rest -= Size(argv[i]) + len(`"",`); rest <= 0 {
			return append(argv[:i+1], omitted)
		}
	}
	return argv
}

// Size is how many bytes a text has in a line, where some characters are
// escaped.
func Size(text string) int {
	size := 0
	for _, r := range text {
		size += sizeOf(r)
	}
	return size
}

func sizeOf(r rune) int {
	const escaped, pair = 6, 12
	switch {
	case r == '"' || r == '\\':
		return len(`\"`)
	case r < ' ' || r == '<' || r == '>' || r == '&' || r == utf8.RuneError:
		return escaped
	case r < 0x7f:
		return 1
	case r < 0x10000: // perhaps as it is, perhaps escaped
		return escaped
	}
	return pair
}

// Shorten returns a text that takes at most so many bytes of a line. It cuts the
// middle out, and says there how many bytes it took, and their digest: texts
// that differ still do. The bound must leave room for that.
func Shorten(text string, most int) string {
	if len(text) <= most/12 || Size(text) <= most {
		return text
	}
	const mark = 64 // at most: "[…12345678 bytes, 0123456789abcdef…]", with two characters that can be escaped
	half := max(0, most-mark) / 2
	start, end := 0, len(text)
	for room := half; start < len(text); {
		r, n := utf8.DecodeRuneInString(text[start:])
		if room -= sizeOf(r); room < 0 {
			break
		}
		start += n
	}
	for room := half; end > start; {
		r, n := utf8.DecodeLastRuneInString(text[start:end])
		if room -= sizeOf(r); room < 0 {
			break
		}
		end -= n
	}
	gone := text[start:end]
	return fmt.Sprintf("%s[…%d bytes, %.8x…]%s", text[:start], len(gone), sha256.Sum256([]byte(gone)), text[end:])
}
