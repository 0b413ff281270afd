//go:build unix

package main

import (
	"slices"
	"strings"
	"testing"
)

const sample = `package sample

import "encoding/json"

// Raw is any JSON value.
type Raw = json.RawMessage

// Ask asks for something; see [Params].
var Ask = Request[Params, Reply]{"demo/ask", ToSidecar}

// Tell tells.
var Tell = Notification[Reply]{Method: "demo/tell", Direction: ToEditor}

// Params are sent.
type Params struct {
	// Name is the name.
	Name string ` + "`json:\"name\"`" + `
	// Size is 0 or Limit.
	Size  *int            ` + "`json:\"size\"`" + `
	Grace *int            ` + "`json:\"grace,omitempty\"`" + `
	Data  []byte          ` + "`json:\"data\"`" + `
	Tags  []string        ` + "`json:\"tags,omitempty\"`" + `
	Words []*string       ` + "`json:\"words\"`" + `
	Env   map[string]bool ` + "`json:\"env\"`" + `
	Any   Raw             ` + "`json:\"any,omitzero\"`" + `
	Color *Color          ` + "`json:\"color\"`" + `
	Ratio float64         ` + "`json:\"ratio\"`" + `
	Table Table           ` + "`json:\"table\"`" + `
	Skip  chan int        ` + "`json:\"-\"`" + `
	inner func()
}

// Reply answers.
type Reply struct {
	Items []Item ` + "`json:\"items\"`" + `
	Base
}

// Item is one.
type Item struct{}

// Base is embedded.
type Base struct {
	// ID: the number.
	ID int ` + "`json:\"id\"`" + `
}

// Table is a map.
type Table map[string]Item

// Color of something.
type Color string

const (
	// Red is a warm color.
	Red Color = "red"
	// DeepBlue: a cold color.
	DeepBlue Color = "blue"
)

// Limit bounds sizes.
const Limit = 9

// Code is an error code.
type Code int64

// CodeNone: nothing there.
const CodeNone Code = -1

// Unused is on no wire.
type Unused struct {
	C chan int ` + "`json:\"c\"`" + `
}
`

func parseSample(t *testing.T) *Package {
	t.Helper()
	p, err := parsePackage([]Source{{Name: "sample.go", Text: sample}})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestParsePackage_MapsTypes(t *testing.T) {
	t.Parallel()
	p := parseSample(t)
	params := p.structNamed("Params")
	if params == nil {
		t.Fatal("no struct Params")
	}
	for i, tt := range []struct {
		name     string
		optional bool
		ts       string
		lua      string
		markdown string
	}{
		{"name", false, "string", "string", "string"},
		{"size", false, "number | null", "integer|vim.NIL|nil", "integer or null"},
		{"grace", true, "number", "integer", "integer"},
		{"data", false, "string", "string", "string (base64)"},
		{"tags", true, "string[]", "string[]", "array of strings"},
		{"words", false, "(string | null)[]", "(string|vim.NIL|nil)[]", "array of string or null"},
		{"env", false, "Record<string, boolean>", "table<string, boolean>", "object of booleans"},
		{"any", true, "unknown", "any", "any JSON"},
		{"color", false, "Color | null", "sandbox_sidecar.Color|vim.NIL|nil", "[Color](#color) or null"},
		{"ratio", false, "number", "number", "number"},
		{"table", false, "Table", "sandbox_sidecar.Table", "[Table](#table)"},
	} {
		if i >= len(params.Fields) {
			t.Fatalf("%s: missing", tt.name)
		}
		f := params.Fields[i]
		if f.Name != tt.name || f.Optional != tt.optional {
			t.Errorf("field %d: got %s, optional %v; want %s, %v", i, f.Name, f.Optional, tt.name, tt.optional)
		}
		for _, got := range [][2]string{
			{tsType(f.Type), tt.ts}, {luaType(f.Type), tt.lua}, {mdType(f.Type), tt.markdown},
		} {
			if got[0] != got[1] {
				t.Errorf("%s: got %q, want %q", tt.name, got[0], got[1])
			}
		}
	}
	if len(params.Fields) != 11 {
		t.Errorf("got %d fields, want 11: unexported and skipped ones are not on the wire", len(params.Fields))
	}
}

func TestParsePackage_KeepsWhatIsReachable(t *testing.T) {
	t.Parallel()
	p := parseSample(t)
	var names []string
	for _, s := range p.Structs {
		names = append(names, s.Name)
	}
	if want := []string{"Params", "Reply", "Item", "Base"}; !slices.Equal(names, want) {
		t.Errorf("structs: got %q, want %q", names, want)
	}
	if len(p.Methods) != 2 || *p.Methods[0] != (Method{
		GoName: "Ask", Name: "demo/ask",
		Doc: "Ask asks for something; see [Params].", Params: "Params", Result: "Reply",
	}) ||
		*p.Methods[1] != (Method{
			GoName: "Tell", Name: "demo/tell", Doc: "Tell tells.", ToEditor: true, Params: "Reply",
		}) {
		t.Errorf("methods: got %+v", p.Methods)
	}
	if len(p.Codes) != 1 || *p.Codes[0] != (Code{GoName: "CodeNone", Value: "-1", Doc: "CodeNone: nothing there."}) {
		t.Errorf("codes: got %+v", p.Codes)
	}
	e := p.enumNamed("Color")
	if e == nil || len(e.Values) != 2 || e.Values[0].Value != "red" || e.Values[1].Value != "blue" {
		t.Fatalf("enum Color: got %+v", e)
	}
	var all []string
	for _, f := range p.allFields(p.structNamed("Reply")) {
		all = append(all, f.Name)
	}
	if want := []string{"items", "id"}; !slices.Equal(all, want) {
		t.Errorf("fields of Reply: got %q, want %q", all, want)
	}
}

func TestParsePackage_RefusesWhatTheWireDoesNotHave(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, source string }{
		{"a channel", "type Root struct {\n F chan int `json:\"f\"`\n}"},
		{"a type of another package", "type Root struct {\n F time.Time `json:\"f\"`\n}"},
		{"a map with number keys", "type Root struct {\n F map[int]string `json:\"f\"`\n}"},
		{"a field without a JSON name", "type Root struct {\n F int\n}"},
		{"two fields with one tag", "type Root struct {\n F, G int `json:\"f\"`\n}"},
		{"an unknown type", "type Root struct {\n F Missing `json:\"f\"`\n}"},
		{"no root", "type Other struct{}"},
		{"a computed enum value", "type Root struct{}\ntype E string\nconst A E = E(\"a\")"},
		{"a method without a direction", "type Root struct{}\nvar M = Notification[Root]{Method: \"m\"}"},
		{"a syntax error", "type Root struct {"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p, err := parsePackage([]Source{{Name: "bad.go", Text: "package bad\n" + tt.source}}, "Root")
			if err == nil {
				t.Errorf("got %+v, want an error", p)
			}
		})
	}
}

func TestClients_DeclareTheSample(t *testing.T) {
	t.Parallel()
	p := parseSample(t)
	ts, luaText := string(typeScript(p)), string(lua(p))
	for _, tt := range []struct{ name, text, want string }{
		{"an object", ts, "export interface Params {\n  /** The name. */\n  name: string;\n  /** 0 or 9. */\n  size: " +
			"number | null;\n  grace?: number;\n"},
		{"an embedded object", ts, "export interface Reply extends Base {\n  items: Item[];\n}\n"},
		{"an object without fields", ts, "export type Item = Record<string, never>;\n"},
		{"an enum", ts, "export type Color = \"red\" | \"blue\";\n"},
		{"an error code", ts, "  /** Nothing there. */\n  none: -1,\n"},
		{"a request", ts, "export const AskRequest = new RequestType<Params, Reply, ErrorData>(\"demo/ask\");\n"},
		{"a notification", ts, "  \"demo/tell\": { direction: \"toEditor\"; params: Reply };\n"},
		{"an object", luaText, "---@class (exact) sandbox_sidecar.Params\n---@field name string The name.\n---@field " +
			"size integer|vim.NIL|nil 0 or 9.\n---@field grace? integer\n"},
		{"an embedded object", luaText, "---@class (exact) sandbox_sidecar.Reply: sandbox_sidecar.Base\n"},
		{"an enum", luaText, "---@alias sandbox_sidecar.Color\n---| \"red\" # A warm color.\n---| \"blue\" # A cold " +
			"color.\n"},
		{"a method", luaText, "  ---`demo/tell` tells.\n  tell = \"demo/tell\",\n"},
		{"an error code", luaText, "  none = -1,\n"},
	} {
		if !strings.Contains(tt.text, tt.want) {
			t.Errorf("%s: not found:\n%s\nin:\n%s", tt.name, tt.want, tt.text)
		}
	}
}
