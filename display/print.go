package display

import (
	"fmt"
	"io"
	"reflect"
	"unicode/utf16"
	"unicode/utf8"
)

// Fprintf is fmt.Fprintf for a terminal: it passes every string and error
// argument through [Line], so that only the format can end a line or move the
// cursor. Lists of strings are treated one by one.
func Fprintf(w io.Writer, format string, args ...any) {
	fit := make([]any, len(args))
	for i, arg := range args {
		fit[i] = fitArgument(arg)
	}
	_, _ = fmt.Fprintf(w, format, fit...)
}

func fitArgument(arg any) any {
	switch arg := arg.(type) {
	case string:
		return Line(arg)
	case error:
		return Line(arg.Error())
	case fmt.Stringer:
		return Line(arg.String())
	case []string:
		return Lines(arg)
	}
	if value := reflect.ValueOf(arg); value.Kind() == reflect.String {
		return Line(value.String())
	}
	return arg
}

// Lines applies Line to each string of a list; nil stays nil.
func Lines(list []string) []string {
	if list == nil {
		return nil
	}
	fit := make([]string, len(list))
	for i, s := range list {
		fit[i] = Line(s)
	}
	return fit
}

// JSON makes JSON or log lines safe for a terminal without changing their
// meaning. It writes invisible characters as \uXXXX, which JSON parsers read
// back. encoding/json does not escape most of them.
func JSON(text []byte) []byte {
	out := make([]byte, 0, len(text))
	for len(text) > 0 {
		r, size := utf8.DecodeRune(text)
		switch {
		case r == utf8.RuneError && size == 1:
			out = append(out, `\ufffd`...)
		case r < 0x7f || visible(r):
			out = append(out, text[:size]...)
		case r >= 0x10000:
			first, second := utf16.EncodeRune(r)
			out = fmt.Appendf(out, `\u%04x\u%04x`, first, second)
		default:
			out = fmt.Appendf(out, `\u%04x`, r)
		}
		text = text[size:]
	}
	return out
}

// JSONWriter passes what is written to it through [JSON]. Each Write must
// contain whole characters.
func JSONWriter(w io.Writer) io.Writer { return jsonWriter{w} }

type jsonWriter struct{ to io.Writer }

func (w jsonWriter) Write(text []byte) (int, error) {
	if _, err := w.to.Write(JSON(text)); err != nil {
		return 0, err
	}
	return len(text), nil
}
