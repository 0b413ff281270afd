//go:build unix

package main

import (
	"bytes"
	_ "embed"
	"fmt"
	"strconv"
	"strings"
	"text/template"

	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
)

//go:embed text/protocol.md
var protocolIntro string

// protocolReference is docs/protocol.md: the hand-written part on the transport,
// then every method, type and code.
func protocolReference(p *Package) ([]byte, error) {
	w := &markdown{pkg: p}
	w.printf("<!-- %s -->\n\n", marker)
	if err := w.intro(); err != nil {
		return nil, err
	}
	examples, err := exampleFrames()
	if err != nil {
		return nil, err
	}
	w.methodIndex()
	for _, m := range p.Methods {
		w.method(m, examples)
	}
	w.sharedTypes()
	w.printf("## Error codes\n\n| Code | Name | Meaning |\n| --- | --- | --- |\n")
	for _, c := range p.Codes {
		w.printf("| %s | %s | %s |\n", c.Value, codeName(c), cell(p.prose(c.Doc, c.GoName, c.Value)))
	}
	w.printf("\n")
	return append(bytes.TrimRight(w.buf.Bytes(), "\n"), '\n'), nil
}

// intro fills the numbers of the declarations into the hand-written part.
func (w *markdown) intro() error {
	code := func(name string) (string, error) {
		for _, c := range w.pkg.Codes {
			if codeName(c) == name {
				return c.Value, nil
			}
		}
		return "", fmt.Errorf("find error code %s: no such code", name)
	}
	tmpl, err := template.New("protocol.md").Funcs(template.FuncMap{"code": code}).Parse(protocolIntro)
	if err != nil {
		return fmt.Errorf("read the introduction: %w", err)
	}
	frame, err := exampleWire()
	if err != nil {
		return err
	}
	return tmpl.Execute(&w.buf, map[string]any{
		"Version": protocol.Version,
		"MaxMiB":  protocol.MaxContentLength >> 20,
		"Frame":   frame,
	})
}

func (w *markdown) methodIndex() {
	w.printf("## Methods\n\n| Method | Kind | Direction |\n| --- | --- | --- |\n")
	for _, m := range w.pkg.Methods {
		w.printf("| [`%s`](#%s) | %s | %s |\n", m.Name, anchor(m.Name), m.kind(), m.direction())
	}
	w.printf("\n")
}

// kind is "request" or "notification".
func (m *Method) kind() string {
	if m.Result == "" {
		return "notification"
	}
	return "request"
}

// direction says who sends the method.
func (m *Method) direction() string {
	switch {
	case m.BothWays:
		return string(protocol.BothWays)
	case m.ToEditor:
		return string(protocol.ToEditor)
	}
	return string(protocol.ToSidecar)
}

// anchor is the link target that Markdown viewers derive from a heading.
func anchor(heading string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case r == '-', r == '_', r >= 'a' && r <= 'z', r >= '0' && r <= '9':
			return r
		case r >= 'A' && r <= 'Z':
			return r - 'A' + 'a'
		}
		return -1
	}, heading)
}

func (w *markdown) method(m *Method, examples map[string][]exampleFrame) {
	w.printf("### `%s`\n\n%s, %s.\n\n", m.Name, upperFirst(m.kind()), m.direction())
	if text := w.pkg.prose(m.Doc, m.GoName, m.Name); text != "" {
		w.printf("%s\n\n", text)
	}
	w.object("Params", m.Params)
	if m.Result != "" {
		w.object("Result", m.Result)
	}
	for _, ex := range examples[m.Name] {
		w.printf("%s:\n\n```json\n%s\n```\n\n", ex.Title, ex.Text)
	}
}

// object writes the params or the result of a method: a table, or a link if
// something else uses the type too.
func (w *markdown) object(role, name string) {
	s := w.pkg.structNamed(name)
	switch {
	case s == nil || w.pkg.isShared(name):
		w.printf("%s: %s\n\n", role, mdLink(name))
	case len(w.pkg.allFields(s)) == 0:
		w.printf("%s: none, an empty object.\n\n", role)
	default:
		w.printf("%s: %s\n\n", role, w.pkg.prose(s.Doc, s.Name, s.Name))
		w.fields(s)
	}
}

// isShared reports whether a type gets a section of its own: every type except
// an object without fields, and the params or result of a single method.
func (p *Package) isShared(name string) bool {
	if s := p.structNamed(name); s != nil && len(p.allFields(s)) == 0 {
		return false
	}
	methods := 0
	for _, m := range p.Methods {
		for _, used := range []string{m.Params, m.Result} {
			if used == name {
				methods++
			}
		}
	}
	if methods != 1 {
		return true
	}
	for _, s := range p.Structs {
		for _, f := range s.Fields {
			if f.Type.mentions(name) {
				return true
			}
		}
	}
	for _, n := range p.Named {
		if n.Type.mentions(name) {
			return true
		}
	}
	return false
}

// mentions reports whether a type is, or contains, the declared type of a name.
func (t Type) mentions(name string) bool {
	return t.Ref == name || t.Elem != nil && t.Elem.mentions(name)
}

func (w *markdown) sharedTypes() {
	w.printf("## Types\n\n")
	for _, s := range w.pkg.Structs {
		if len(w.pkg.allFields(s)) > 0 && w.pkg.isShared(s.Name) {
			w.printf("### %s\n\n%s\n\n", s.Name, w.pkg.prose(s.Doc, s.Name, s.Name))
			w.fields(s)
		}
	}
	for _, n := range w.pkg.Named {
		w.printf("### %s\n\n%s\n\nType: %s\n\n", n.Name, w.pkg.prose(n.Doc, n.Name, n.Name), mdType(n.Type))
	}
	if len(w.pkg.Enums) == 0 {
		return
	}
	w.printf("## Enumerations\n\nEach is a string.\n\n")
	for _, e := range w.pkg.Enums {
		w.printf("### %s\n\n%s\n\n", e.Name, w.pkg.prose(e.Doc, e.Name, e.Name))
		w.values(e)
	}
}

// exampleWire is a whole message with its header, as it is sent.
func exampleWire() (string, error) {
	body, err := marshalPlain(request(protocol.Shutdown, 7, protocol.Empty{}), "")
	if err != nil {
		return "", fmt.Errorf("write an example: %w", err)
	}
	return "Content-Length: " + strconv.Itoa(len(body)) + "\n\n" + string(body), nil
}
