//go:build unix

package main

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"

	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/compile"
)

// typeScript is the protocol for clients that use vscode-jsonrpc: types, and
// values that tie each method's name to its types.
func typeScript(p *Package) []byte {
	w := &tsWriter{pkg: p}
	w.printf("// %s\n\n", marker)
	w.printf("import { NotificationType, RequestType } from \"vscode-jsonrpc/node\";\n\n")
	w.doc("", "The protocol version that these types describe.")
	w.printf("export const protocolVersion = %d;\n\n", protocol.Version)
	w.doc("", "The largest message body in bytes.")
	w.printf("export const maxContentLength = %d;\n\n", protocol.MaxContentLength)
	w.doc("", "The keys of the settings that have a single value, in the order in which they are shown.")
	w.printf("export const scalarKeys: readonly string[] = [\n")
	for _, key := range compile.ScalarKeys() {
		w.printf("  %s,\n", strconv.Quote(key))
	}
	w.printf("];\n")
	w.errorCodes()
	for _, e := range p.Enums {
		w.enum(e)
	}
	for _, n := range p.Named {
		w.printf("\n")
		w.doc("", p.prose(n.Doc, n.Name, n.Name))
		w.printf("export type %s = %s;\n", n.Name, tsType(n.Type))
	}
	for _, s := range p.Structs {
		w.object(s)
	}
	w.methodNames()
	w.methodMap("Requests", "The requests by method.", func(m *Method) bool { return m.Result != "" })
	w.methodMap("Notifications", "The notifications by method.", func(m *Method) bool { return m.Result == "" })
	w.descriptors()
	return w.buf.Bytes()
}

type tsWriter struct {
	buf bytes.Buffer
	pkg *Package
}

func (w *tsWriter) printf(format string, args ...any) { fmt.Fprintf(&w.buf, format, args...) }

func (w *tsWriter) doc(indent, text string) {
	if text == "" {
		return
	}
	lines := wrap(strings.ReplaceAll(text, "*/", "* /"), 110-len(indent))
	if len(lines) == 1 {
		w.printf("%s/** %s */\n", indent, lines[0])
		return
	}
	w.printf("%s/**\n", indent)
	for _, line := range lines {
		w.printf("%s\n", strings.TrimRight(indent+" * "+line, " "))
	}
	w.printf("%s */\n", indent)
}

func (w *tsWriter) errorCodes() {
	w.printf("\n")
	w.doc("", "The error codes that answers may carry.")
	w.printf("export const ErrorCodes = {\n")
	for _, c := range w.pkg.Codes {
		w.doc("  ", w.pkg.prose(c.Doc, c.GoName, c.Value))
		w.printf("  %s: %s,\n", codeName(c), c.Value)
	}
	w.printf("} as const;\n")
}

// codeName is the name of an error code outside Go, such as "sessionNotFound".
func codeName(c *Code) string { return lowerFirst(strings.TrimPrefix(c.GoName, "Code")) }

func (w *tsWriter) enum(e *Enum) {
	text := w.pkg.prose(e.Doc, e.Name, e.Name)
	var values []string
	separator := "\n\n- "
	for _, v := range e.Values {
		quoted := strconv.Quote(v.Value)
		values = append(values, quoted)
		text += separator + "`" + quoted + "`: " + valueProse(w.pkg, v)
		separator = "\n- "
	}
	w.printf("\n")
	w.doc("", text)
	w.printf("export type %s = %s;\n", e.Name, strings.Join(values, " | "))
}

func (w *tsWriter) object(s *Struct) {
	w.printf("\n")
	w.doc("", w.pkg.prose(s.Doc, s.Name, s.Name))
	if len(s.Fields) == 0 && len(s.Embeds) == 0 {
		// An interface without members accepts every value.
		w.printf("export type %s = Record<string, never>;\n", s.Name)
		return
	}
	extends := ""
	if len(s.Embeds) > 0 {
		extends = " extends " + strings.Join(s.Embeds, ", ")
	}
	w.printf("export interface %s%s {\n", s.Name, extends)
	for _, f := range s.Fields {
		w.doc("  ", fieldProse(w.pkg, f))
		mark := ""
		if f.Optional {
			mark = "?"
		}
		w.printf("  %s%s: %s;\n", f.Name, mark, tsType(f.Type))
	}
	w.printf("}\n")
}

func (w *tsWriter) methodNames() {
	w.printf("\n")
	w.doc("", "The names of the methods.")
	w.printf("export const Methods = {\n")
	for _, m := range w.pkg.Methods {
		w.printf("  %s: %q,\n", lowerFirst(m.GoName), m.Name)
	}
	w.printf("} as const;\n")
}

func (w *tsWriter) methodMap(name, doc string, keep func(*Method) bool) {
	w.printf("\n")
	w.doc("", doc)
	w.printf("export interface %s {\n", name)
	for _, m := range w.pkg.Methods {
		if !keep(m) {
			continue
		}
		direction := "toSidecar"
		switch {
		case m.BothWays:
			direction = "bothWays"
		case m.ToEditor:
			direction = "toEditor"
		}
		result := ""
		if m.Result != "" {
			result = "; result: " + m.Result
		}
		w.printf("  %q: { direction: %q; params: %s%s };\n", m.Name, direction, m.Params, result)
	}
	w.printf("}\n")
}

func (w *tsWriter) descriptors() {
	for _, m := range w.pkg.Methods {
		w.printf("\n")
		w.doc("", w.pkg.prose(m.Doc, m.GoName, m.Name))
		if m.Result == "" {
			w.printf("export const %sNotification = new NotificationType<%s>(%q);\n", m.GoName, m.Params, m.Name)
		} else {
			w.printf("export const %sRequest = new RequestType<%s, %s, ErrorData>(%q);\n", m.GoName, m.Params,
				m.Result, m.Name)
		}
	}
}

// tsType writes a type in TypeScript.
func tsType(t Type) string {
	if t.Nullable {
		t.Nullable = false
		return tsType(t) + " | null"
	}
	switch t.Kind {
	case KindInt, KindNumber:
		return "number"
	case KindBool:
		return "boolean"
	case KindAny:
		return "unknown"
	case KindRef:
		return t.Ref
	case KindList:
		elem := tsType(*t.Elem)
		if t.Elem.Nullable {
			elem = "(" + elem + ")"
		}
		return elem + "[]"
	case KindMap:
		return "Record<string, " + tsType(*t.Elem) + ">"
	default:
		return "string"
	}
}
