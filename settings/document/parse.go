package document

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/tailscale/hujson"

	"github.com/sandbox-sidecar/sandbox-sidecar/display"
)

// parse makes a decoder of a settings file, with the file's object: nil if there
// is none, as in an empty file of an editor. Then the block is nil if there is a
// problem.
func parse(data []byte, platform string, whose Owner) (*decoder, *hujson.Object, *Diagnostic) {
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	d := &decoder{lines: lineStarts(data), platform: platform, owner: whose, Block: &Block{Spans: map[string]Span{}}}
	if d.project = whose == Project; d.project {
		d.owner = Editor
	}
	failed := func(problem *Diagnostic) (*decoder, *hujson.Object, *Diagnostic) {
		d.Block = nil
		return d, nil, problem
	}
	if at := invalidUTF8(data); at >= 0 {
		return failed(d.fatal(at, "not valid UTF-8: byte 0x%02x", data[at]))
	}
	outline := scan(data)
	if outline.empty && whose == Sidecar {
		// A full disk or an interrupted save leaves an empty file. That must
		// not count as "no settings".
		return failed(d.fatal(0, "%s", EmptyText))
	}
	if outline.empty {
		d.Empty = true
		return d, nil, nil
	}
	if outline.tooDeep >= 0 {
		return failed(d.fatal(outline.tooDeep, "nested deeper than %d levels", maxDepth))
	}
	// A comment on a last line without a newline is legal in the editors that
	// write these files, but an error in hujson.
	value, err := hujson.Parse(append(bytes.Clone(data), '\n'))
	if err != nil {
		at, cause := SyntaxError(err)
		if at.Line > len(d.lines) {
			// The added newline is not in the file.
			at = d.at(len(data))
		}
		return failed(&Diagnostic{
			Line: at.Line, Column: at.Column, Severity: SeverityError,
			Message: display.Line("not valid JSON: " + cause),
		})
	}
	root, ok := value.Value.(*hujson.Object)
	if !ok {
		return failed(d.fatal(value.StartOffset, "expected an object, found %s", describe(value)))
	}
	return d, root, nil
}

// SyntaxError takes the position and the cause out of a parser's error. hujson
// gives the position only as text. This is the one place that parses it, and a
// test compares it with the library.
func SyntaxError(err error) (Position, string) {
	at := Position{1, 1}
	if _, scanErr := fmt.Sscanf(err.Error(), "hujson: line %d, column %d:", &at.Line, &at.Column); scanErr != nil {
		return Position{1, 1}, err.Error()
	}
	cause := err.Error()
	if inner := errors.Unwrap(err); inner != nil {
		cause = inner.Error()
	}
	const most = 200
	if len(cause) > most {
		cause = strings.ToValidUTF8(cause[:most], "") + "…"
	}
	return at, cause
}
