//go:build unix

package main

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"

	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
)

// luaPrefix is the namespace of the LuaCATS classes.
const luaPrefix = "sandbox_sidecar."

// lua is the protocol for the Neovim client: LuaCATS annotations, and a table
// of method names and error codes.
func lua(p *Package) []byte {
	w := &luaWriter{pkg: p}
	w.printf("-- %s\n", marker)
	for _, e := range p.Enums {
		w.printf("\n")
		w.doc(p.prose(e.Doc, e.Name, e.Name))
		w.printf("---@alias %s%s\n", luaPrefix, e.Name)
		for _, v := range e.Values {
			w.printf("---| %s # %s\n", strconv.Quote(v.Value), oneLine(valueProse(p, v)))
		}
	}
	for _, n := range p.Named {
		w.printf("\n")
		w.doc(p.prose(n.Doc, n.Name, n.Name))
		w.printf("---@alias %s%s %s\n", luaPrefix, n.Name, luaType(n.Type))
	}
	for _, s := range p.Structs {
		w.object(s)
	}
	w.table()
	return w.buf.Bytes()
}

type luaWriter struct {
	buf bytes.Buffer
	pkg *Package
}

func (w *luaWriter) printf(format string, args ...any) { fmt.Fprintf(&w.buf, format, args...) }

func (w *luaWriter) doc(text string) {
	if text == "" {
		return
	}
	for _, line := range wrap(text, 110) {
		w.printf("%s\n", "---"+line)
	}
}

func (w *luaWriter) object(s *Struct) {
	w.printf("\n")
	w.doc(w.pkg.prose(s.Doc, s.Name, s.Name))
	parents := ""
	for i, e := range s.Embeds {
		parents += []string{": ", ", "}[min(i, 1)] + luaPrefix + e
	}
	w.printf("---@class (exact) %s%s%s\n", luaPrefix, s.Name, parents)
	for _, f := range s.Fields {
		mark := ""
		if f.Optional {
			mark = "?"
		}
		line := fmt.Sprintf("---@field %s%s %s %s", f.Name, mark, luaType(f.Type), oneLine(fieldProse(w.pkg, f)))
		w.printf("%s\n", strings.TrimRight(line, " "))
	}
}

func (w *luaWriter) table() {
	w.printf("\nlocal M = {}\n")
	w.printf("\n---The protocol version that these types describe.\nM.version = %d\n", protocol.Version)
	w.printf("\n---The largest message body in bytes.\nM.max_content_length = %d\n", protocol.MaxContentLength)
	w.printf("\n---The names of the methods.\nM.methods = {\n")
	for _, m := range w.pkg.Methods {
		for _, line := range wrap(w.pkg.prose(m.Doc, m.GoName, m.Name), 108) {
			w.printf("  ---%s\n", line)
		}
		w.printf("  %s = %s,\n", snakeCase(m.GoName), strconv.Quote(m.Name))
	}
	w.printf("}\n\n---The error codes that answers may carry.\nM.error_codes = {\n")
	for _, c := range w.pkg.Codes {
		for _, line := range wrap(w.pkg.prose(c.Doc, c.GoName, c.Value), 108) {
			w.printf("  ---%s\n", line)
		}
		w.printf("  %s = %s,\n", snakeCase(strings.TrimPrefix(c.GoName, "Code")), c.Value)
	}
	w.printf("}\n\nreturn M\n")
}

// luaType writes a type in LuaCATS. A decoded null is nil or vim.NIL, depending
// on the version of Neovim.
func luaType(t Type) string {
	if t.Nullable {
		t.Nullable = false
		return luaType(t) + "|vim.NIL|nil"
	}
	switch t.Kind {
	case KindInt:
		return "integer"
	case KindNumber:
		return "number"
	case KindBool:
		return "boolean"
	case KindAny:
		return "any"
	case KindRef:
		return luaPrefix + t.Ref
	case KindList:
		elem := luaType(*t.Elem)
		if t.Elem.Nullable {
			elem = "(" + elem + ")"
		}
		return elem + "[]"
	case KindMap:
		return "table<string, " + luaType(*t.Elem) + ">"
	default:
		return "string"
	}
}

// oneLine joins paragraphs, for annotations that end with their line.
func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// snakeCase turns a Go name such as "SettingsGet" or "PTYError" into
// "settings_get", "pty_error".
func snakeCase(name string) string {
	var b strings.Builder
	runes := []rune(name)
	upper := func(i int) bool { return i >= 0 && i < len(runes) && runes[i] >= 'A' && runes[i] <= 'Z' }
	for i, r := range runes {
		if upper(i) && i > 0 && (!upper(i-1) || i+1 < len(runes) && !upper(i+1)) {
			b.WriteByte('_')
		}
		b.WriteRune(r)
	}
	return strings.ToLower(b.String())
}
