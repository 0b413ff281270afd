//go:build unix

package main

import (
	"bytes"
	"fmt"
	"strings"
)

// helpWidth is the text width of Vim's own help files, in columns.
const helpWidth = 78

// settingsHelp is the settings reference as Vim help, with a tag for each key.
func settingsHelp(p *Package) ([]byte, error) {
	block := p.structNamed(settingsRoot)
	if block == nil {
		return nil, fmt.Errorf("describe the settings: %s: no such struct", settingsRoot)
	}
	w := &help{pkg: p}
	w.printf("*sandbox-sidecar-settings.txt*  The settings of the sandbox\n\n%s\n\n", marker)
	w.heading("SETTINGS", "sandbox-sidecar-settings")
	w.paragraph("", "These keys stand in `terminal.sandbox` of your settings file (`:Sidecar settings`) or of a "+
		"project's. Each may be absent or null: "+
		"then it inherits. Which file counts when, and examples, are in docs/settings.md of the project.")
	if err := w.settings(block, ""); err != nil {
		return nil, err
	}
	w.printf(" vim:tw=78:ts=8:ft=help:norl:\n")
	return w.buf.Bytes(), nil
}

// help builds a help file.
type help struct {
	buf bytes.Buffer
	pkg *Package
}

func (w *help) printf(format string, args ...any) { fmt.Fprintf(&w.buf, format, args...) }

// heading begins a section with a tag at the right margin.
func (w *help) heading(title, tag string) {
	w.printf("%s\n", strings.Repeat("=", helpWidth))
	w.tagged(title, tag)
}

// tagged writes a line with a tag at the right margin, or above the line if both
// do not fit.
func (w *help) tagged(text, tag string) {
	tag = "*" + tag + "*"
	room := helpWidth - len(text) - len(tag)
	if room < 1 {
		w.printf("%*s\n%s\n\n", helpWidth, tag, text)
		return
	}
	w.printf("%s%s%s\n\n", text, strings.Repeat(" ", room), tag)
}

func (w *help) paragraph(indent, text string) {
	// A bar would be a link to a tag.
	for _, line := range wrap(strings.ReplaceAll(text, "|", "/"), helpWidth-len(indent)) {
		w.printf("%s%s\n", indent, line)
	}
	w.printf("\n")
}

// settings writes the entries of an object's keys; prefix is the dotted key of
// the object.
func (w *help) settings(s *Struct, prefix string) error {
	for _, f := range w.pkg.allFields(s) {
		key := prefix + f.Name
		w.tagged(key, "sandbox-sidecar-setting-"+key)
		w.paragraph("    ", w.pkg.prose(f.Doc, f.GoName, f.Name))
		if f.Type.Ref == settingsRoot {
			continue
		}
		if nested := w.pkg.structNamed(f.Type.Ref); nested != nil {
			if err := w.settings(nested, key+"."); err != nil {
				return err
			}
			continue
		}
		value, err := defaultJSON(key)
		if err != nil {
			return err
		}
		enum := w.pkg.enumNamed(f.Type.Ref)
		if enum == nil {
			w.paragraph("    ", "Type: "+mdType(Type{Kind: f.Type.Kind, Elem: f.Type.Elem})+".")
		} else {
			for _, v := range enum.Values {
				w.paragraph("      ", fmt.Sprintf("%q: %s", v.Value, valueProse(w.pkg, v)))
			}
		}
		w.paragraph("    ", "Default: `"+strings.ReplaceAll(string(value), `,"`, `, "`)+"`")
	}
	return nil
}
