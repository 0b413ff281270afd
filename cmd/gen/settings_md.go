//go:build unix

package main

import (
	"bytes"
	_ "embed"
	"fmt"
	"strings"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/protected"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/toolchain"
)

//go:embed text/settings.md
var settingsIntro string

// settingsReference is docs/settings.md: the hand-written introduction, and a
// section for each key.
func settingsReference(p *Package) ([]byte, error) {
	block := p.structNamed(settingsRoot)
	if block == nil {
		return nil, fmt.Errorf("describe the settings: %s: no such struct", settingsRoot)
	}
	w := &markdown{pkg: p}
	w.printf("<!-- %s -->\n\n%s\n## Keys\n\n", marker, settingsIntro)
	w.printf("All keys stand in `terminal.sandbox`, and each may be absent or null: then it inherits.\n\n")
	if err := w.settings(block, ""); err != nil {
		return nil, err
	}
	return append(bytes.TrimRight(w.buf.Bytes(), "\n"), '\n'), nil
}

// settings writes the sections of an object's keys; prefix is the dotted key of
// the object.
func (w *markdown) settings(s *Struct, prefix string) error {
	for _, f := range w.pkg.allFields(s) {
		key := prefix + f.Name
		w.printf("### `%s`\n\n", key)
		text := w.pkg.prose(f.Doc, f.GoName, f.Name)
		if f.Type.Ref == settingsRoot {
			w.printf("%s\n\n- type: object, with the keys above except `apply_to`\n\n", text)
			continue
		}
		if nested := w.pkg.structNamed(f.Type.Ref); nested != nil {
			w.printf("%s\n\n- type: object\n\n", text)
			if err := w.settings(nested, key+"."); err != nil {
				return err
			}
			continue
		}
		value, err := defaultJSON(key)
		if err != nil {
			return err
		}
		shown := strings.ReplaceAll(string(value), `,"`, `, "`)
		enum := w.pkg.enumNamed(f.Type.Ref)
		kind := mdType(Type{Kind: f.Type.Kind, Elem: f.Type.Elem})
		if enum != nil {
			kind = "one of the strings below"
		}
		if f.Type.Kind == KindMap {
			kind = "object with entries as below; one that is null takes its entry away"
		}
		w.printf("%s\n\n- type: %s\n- default: `%s`\n\n", text, kind, shown)
		if enum != nil {
			w.values(enum)
		}
		if f.Type.Kind == KindMap {
			w.entries(w.pkg.structNamed(f.Type.Elem.Ref))
		}
		if key == "toolchains" {
			w.toolchains()
		}
		if key == "protected_paths" {
			w.protectedNames()
		}
	}
	return nil
}

// entries is the table of what each entry of an object holds.
func (w *markdown) entries(s *Struct) {
	w.printf("| In an entry | Type | Meaning |\n| --- | --- | --- |\n")
	for _, f := range w.pkg.allFields(s) {
		t := f.Type
		t.Nullable = false
		w.printf("| `%s` | %s | %s |\n", f.Name, mdType(t), cell(w.pkg.prose(f.Doc, f.GoName, f.Name)))
	}
	w.printf("\n")
}

// protectedNames writes the table of names that programs outside act upon.
func (w *markdown) protectedNames() {
	w.printf("The built-in list. What else git would run in the project's repository is added to it:\n\n")
	w.namesOf("")
	w.printf("Sessions may change these for good reasons. The review at a session's end lists their changes, " +
		"one line for each group. It also\nlists names of the list above that are new in subdirectories.\n\n")
	for _, group := range protected.Groups {
		w.printf("#### Review: %s\n\n", group)
		w.namesOf(group)
	}
}

// namesOf writes the names of a group.
func (w *markdown) namesOf(group protected.Group) {
	w.printf("| Name | Who acts on it | Why |\n| --- | --- | --- |\n")
	for _, n := range protected.Names {
		if n.Group == group {
			w.printf("| `%s` | %s | %s |\n", n.Path, n.Who, n.Why)
		}
	}
	w.printf("\n")
}

// proofs writes what the directories that variables name must hold.
func (w *markdown) proofs(t toolchain.Toolchain) {
	written := map[string]bool{}
	for _, p := range t.Places {
		if proof := p.Proof(); len(proof) > 0 && !written[p.Variable] {
			if len(written) == 0 {
				w.printf("Proof, one for each directory that a variable names:\n\n")
			}
			written[p.Variable] = true
			w.printf("- `%s`: `%s`\n", p.Variable, strings.Join(proof, "`, `"))
		}
	}
	if len(written) > 0 {
		w.printf("\n")
	}
}

// toolchains writes the contents of each toolchain.
func (w *markdown) toolchains() {
	w.printf("What is not there is left out; a cache that its tools could not make themselves is made when a session " +
		"starts. A variable in the\n" +
		"second column moves the place. Its directory counts if it holds one of the names that are listed as " +
		"proof. Else a note says\nwhat is missing, because a line in a project's `.env` can set such a variable. " +
		"What a session could have made proves nothing, and a\ndirectory that holds the project, your home " +
		"directory or another place that sessions may write never counts. One in the project or in a\n" +
		"grant of yours needs no proof. " +
		"Caches are shared with what runs outside: a session can leave code\nin them that a build outside will " +
		"use. What runs without being built, and what holds tokens, cannot be written.\n\n" +
		"While `allow_network` is false, sessions also reach the registries of a toolchain, on Linux. " +
		"`denied_hosts` takes single ones away,\nand `\"allowed_hosts\": []` all. A registry also takes what is " +
		"published: whoever has a token for it can send data there.\n\n")
	for _, t := range toolchain.All {
		w.printf("#### `%s`\n\n%s\n\n| Place | Moved by | Access | System | What is there |\n| --- | --- | "+
			"--- | --- | --- |\n", t.Name, t.About)
		for _, p := range t.Places {
			moved, system := "", "all"
			if p.Variable != "" && p.At != "" {
				moved = "`" + p.Variable + "`"
			}
			if p.Platform != "" {
				system = map[string]string{"linux": "Linux", "darwin": "macOS"}[p.Platform]
			}
			w.printf("| `%s` | %s | %s | %s | %s |\n", p.Path(), moved, strings.Join(p.Access.Names(), ", "),
				system, p.Why)
		}
		w.printf("\n")
		var names []string
		for _, v := range t.Variables {
			names = append(names, v.Name)
		}
		if len(names) > 0 {
			w.printf("Variables: `%s`.\n\n", strings.Join(names, "`, `"))
		}
		w.proofs(t)
		if t.Agent {
			w.printf("The agent outside sees nothing of what sessions write there, also if `toolchain_caches` is " +
				"\"shared\". On a machine without overlays,\nand on macOS, sessions can only read it.\n\n")
		}
		if len(t.Registries()) == 0 {
			continue
		}
		w.printf("Registries, while `allow_network` is false:\n\n")
		for _, r := range t.Registries() {
			w.printf("- `%s`: %s\n", r.Host, r.Why)
		}
		w.printf("\n")
	}
}
