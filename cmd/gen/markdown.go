//go:build unix

package main

import (
	"bytes"
	"fmt"
	"strings"
)

// markdown collects a document.
type markdown struct {
	buf bytes.Buffer
	pkg *Package
}

func (w *markdown) printf(format string, args ...any) { fmt.Fprintf(&w.buf, format, args...) }

// cell escapes text for a table.
func cell(text string) string { return strings.ReplaceAll(oneLine(text), "|", `\|`) }

// fields is the table of an object's fields.
func (w *markdown) fields(s *Struct) {
	fields := w.pkg.allFields(s)
	if len(fields) == 0 {
		w.printf("No fields.\n\n")
		return
	}
	w.printf("| Field | Type | Meaning |\n| --- | --- | --- |\n")
	for _, f := range fields {
		optional := ""
		if f.Optional {
			optional = ", optional"
		}
		w.printf("| `%s` | %s%s | %s |\n", f.Name, mdType(f.Type), optional, cell(fieldProse(w.pkg, f)))
	}
	w.printf("\n")
}

// values is the table of an enum's values.
func (w *markdown) values(e *Enum) {
	w.printf("| Value | Meaning |\n| --- | --- |\n")
	for _, v := range e.Values {
		w.printf("| `\"%s\"` | %s |\n", v.Value, cell(valueProse(w.pkg, v)))
	}
	w.printf("\n")
}

// mdType writes a type in words. Declared types link to their section.
func mdType(t Type) string {
	if t.Nullable {
		t.Nullable = false
		return mdType(t) + " or null"
	}
	switch t.Kind {
	case KindInt:
		return "integer"
	case KindNumber:
		return "number"
	case KindBool:
		return "boolean"
	case KindBytes:
		return "string (base64)"
	case KindAny:
		return "any JSON"
	case KindRef:
		return mdLink(t.Ref)
	case KindList:
		return "array of " + mdPlural(*t.Elem)
	case KindMap:
		return "object of " + mdPlural(*t.Elem)
	default:
		return "string"
	}
}

// mdPlural writes the type of the elements of an array or object.
func mdPlural(t Type) string {
	text := mdType(t)
	if text == "string" || text == "integer" || text == "number" || text == "boolean" {
		return text + "s"
	}
	return text
}

// mdLink links to the section whose heading is the name alone.
func mdLink(name string) string { return fmt.Sprintf("[%s](#%s)", name, strings.ToLower(name)) }
