//go:build unix

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/sandbox-sidecar/sandbox-sidecar/settings"
)

// schemaNode is a JSON Schema, with its keys in the order for readers.
type schemaNode struct {
	Schema                   string            `json:"$schema,omitempty"`
	Comment                  string            `json:"$comment,omitempty"`
	Ref                      string            `json:"$ref,omitempty"`
	Title                    string            `json:"title,omitempty"`
	Description              string            `json:"description,omitempty"`
	MarkdownDescription      string            `json:"markdownDescription,omitempty"`
	AllowComments            bool              `json:"allowComments,omitempty"`
	AllowTrailingCommas      bool              `json:"allowTrailingCommas,omitempty"`
	Type                     schemaTypes       `json:"type,omitempty"`
	Minimum                  int               `json:"minimum,omitempty"`
	Maximum                  int               `json:"maximum,omitempty"`
	Enum                     []any             `json:"enum,omitempty"`
	EnumDescriptions         []string          `json:"enumDescriptions,omitempty"`
	MarkdownEnumDescriptions []string          `json:"markdownEnumDescriptions,omitempty"`
	Pattern                  string            `json:"pattern,omitempty"`
	PatternErrorMessage      string            `json:"patternErrorMessage,omitempty"`
	Examples                 []any             `json:"examples,omitempty"`
	DefaultSnippets          []schemaSnippet   `json:"defaultSnippets,omitempty"`
	Items                    *schemaNode       `json:"items,omitempty"`
	Properties               *schemaProperties `json:"properties,omitempty"`
	// AdditionalProperties is false, or the schema of every other member.
	AdditionalProperties any               `json:"additionalProperties,omitempty"`
	Required             []string          `json:"required,omitempty"`
	Default              json.RawMessage   `json:"default,omitempty"`
	Definitions          *schemaProperties `json:"definitions,omitempty"`
}

// schemaTypes are the types that a value may have.
type schemaTypes []string

// MarshalJSON writes a single type as a string, several as a list.
func (ts schemaTypes) MarshalJSON() ([]byte, error) {
	if len(ts) == 1 {
		return json.Marshal(ts[0])
	}
	return json.Marshal([]string(ts))
}

// schemaProperties keeps the order of declaration, which a map would lose.
type schemaProperties []schemaProperty

type schemaProperty struct {
	Name string
	Node *schemaNode
}

// MarshalJSON writes an object in order.
func (ps schemaProperties) MarshalJSON() ([]byte, error) {
	var buf bytes.Buffer
	buf.WriteByte('{')
	for i, p := range ps {
		if i > 0 {
			buf.WriteByte(',')
		}
		name, err := json.Marshal(p.Name)
		if err != nil {
			return nil, err
		}
		node, err := marshalPlain(p.Node, "")
		if err != nil {
			return nil, err
		}
		buf.Write(name)
		buf.WriteByte(':')
		buf.Write(node)
	}
	buf.WriteByte('}')
	return buf.Bytes(), nil
}

// marshalPlain writes JSON without escaping <, > and &.
func marshalPlain(v any, indent string) ([]byte, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", indent)
	err := enc.Encode(v)
	return bytes.TrimRight(buf.Bytes(), "\n"), err
}

// settingsSchema is the JSON Schema of a whole settings file. Draft 7 is the
// newest draft that all editors support. Everything outside of the sandbox block
// belongs to other programs and is allowed.
func settingsSchema(p *Package) ([]byte, error) {
	block := p.structNamed(settingsRoot)
	if block == nil {
		return nil, fmt.Errorf("describe the settings: %s: no such struct", settingsRoot)
	}
	sandbox, err := objectSchema(p, block, "")
	if err != nil {
		return nil, err
	}
	sandbox.Description = "What processes that the editor starts may do."
	kind := *sandbox
	kind.Description = "What sessions of one kind may do. These keys override the others."
	keys := slices.DeleteFunc(slices.Clone(*sandbox.Properties), func(p schemaProperty) bool {
		return settings.OnlyWhole(p.Name)
	})
	kind.Properties = &keys
	sandbox.DefaultSnippets = []schemaSnippet{
		{
			Label: "sandbox everything", Description: "The user's terminals and the agent's tools.",
			Body: anyMap{"enabled": true},
		},
		{
			Label: "sandbox the agent's tools", Description: "The user's own terminals stay free.",
			Body: anyMap{"enabled": true, "apply_to": "tool", "toolchains": []string{"$1"}},
		},
	}
	object := []string{"object", "null"}
	terminal := &schemaNode{
		Description: "The terminal.",
		Type:        object,
		Properties:  &schemaProperties{{"sandbox", &schemaNode{Ref: "#/definitions/sandbox"}}},
	}
	platform := &schemaNode{
		Description: "Settings that override the others on one platform.",
		Type:        object,
		Properties:  &schemaProperties{{"terminal", &schemaNode{Ref: "#/definitions/terminal"}}},
	}
	properties := schemaProperties{{"terminal", &schemaNode{Ref: "#/definitions/terminal"}}}
	for _, name := range []string{"linux", "macos", "windows"} {
		properties = append(properties, schemaProperty{name, &schemaNode{Ref: "#/definitions/platform"}})
	}
	text, err := marshalPlain(&schemaNode{
		Schema:              "http://json-schema.org/draft-07/schema#",
		Comment:             marker,
		Title:               "Settings of sandbox-sidecar",
		Description:         "A settings file: the sandbox block, alone or beside the editor's own settings.",
		AllowComments:       true,
		AllowTrailingCommas: true,
		Type:                schemaTypes{"object"},
		Properties:          &properties,
		Definitions: &schemaProperties{
			{"platform", platform}, {"terminal", terminal}, {"sandbox", sandbox}, {"kind", &kind},
		},
	}, "  ")
	return append(text, '\n'), err
}

// objectSchema describes a struct of the settings. All its keys may be absent or
// null. prefix is the dotted key of the struct.
func objectSchema(p *Package, s *Struct, prefix string) (*schemaNode, error) {
	properties := schemaProperties{}
	for _, f := range p.allFields(s) {
		node, err := fieldSchema(p, f, prefix+f.Name)
		if err != nil {
			return nil, err
		}
		properties = append(properties, schemaProperty{f.Name, node})
	}
	return &schemaNode{Type: []string{"object", "null"}, Properties: &properties, AdditionalProperties: false}, nil
}

func fieldSchema(p *Package, f *Field, key string) (*schemaNode, error) {
	text := p.prose(f.Doc, f.GoName, f.Name)
	if f.Type.Kind == KindRef {
		if f.Type.Ref == settingsRoot {
			return &schemaNode{Ref: "#/definitions/kind", Description: plainText(text), MarkdownDescription: text}, nil
		}
		if s := p.structNamed(f.Type.Ref); s != nil {
			node, err := objectSchema(p, s, key+".")
			if err != nil {
				return nil, err
			}
			node.Description, node.MarkdownDescription = plainText(text), text
			return node, nil
		}
	}
	node, err := typeSchema(p, f.Type)
	if err != nil {
		return nil, fmt.Errorf("describe the setting: %s: %w", key, err)
	}
	if f.Type.Kind == KindInt {
		node.Minimum, node.Maximum = settings.Range(key)
	}
	node.Type = append(node.Type, "null")
	if node.Enum != nil {
		inherits := "Inherits from the layer below."
		node.Enum = append(node.Enum, nil)
		node.EnumDescriptions = append(node.EnumDescriptions, inherits)
		node.MarkdownEnumDescriptions = append(node.MarkdownEnumDescriptions, inherits)
	}
	if err := addHints(node, key); err != nil {
		return nil, err
	}
	node.Description, node.MarkdownDescription = plainText(text), text
	node.Default, err = defaultJSON(key)
	return node, err
}

func typeSchema(p *Package, t Type) (*schemaNode, error) {
	switch t.Kind {
	case KindString:
		return &schemaNode{Type: []string{"string"}}, nil
	case KindInt:
		return &schemaNode{Type: []string{"integer"}}, nil
	case KindNumber:
		return &schemaNode{Type: []string{"number"}}, nil
	case KindBool:
		return &schemaNode{Type: []string{"boolean"}}, nil
	case KindList:
		items, err := typeSchema(p, *t.Elem)
		return &schemaNode{Type: []string{"array"}, Items: items}, err
	case KindMap:
		entry, err := entrySchema(p, *t.Elem)
		return &schemaNode{Type: []string{"object"}, AdditionalProperties: entry}, err
	case KindRef:
		e := p.enumNamed(t.Ref)
		if e == nil {
			break
		}
		node := &schemaNode{Type: []string{"string"}}
		for _, v := range e.Values {
			text := valueProse(p, v)
			node.Enum = append(node.Enum, v.Value)
			node.EnumDescriptions = append(node.EnumDescriptions, plainText(text))
			node.MarkdownEnumDescriptions = append(node.MarkdownEnumDescriptions, text)
		}
		return node, nil
	}
	return nil, errors.New("a type that settings cannot have")
}

// entrySchema describes the entries of an object whose names are the user's. They
// have no defaults.
func entrySchema(p *Package, t Type) (*schemaNode, error) {
	s := p.structNamed(t.Ref)
	if t.Kind != KindRef || s == nil {
		return nil, errors.New("entries that are no objects")
	}
	properties := schemaProperties{}
	for _, f := range p.allFields(s) {
		node, err := typeSchema(p, f.Type)
		if err != nil {
			return nil, fmt.Errorf("describe the setting: %s: %w", f.Name, err)
		}
		if h, known := schemaHints["credentials."+f.Name]; known {
			h.addTo(node)
		}
		text := p.prose(f.Doc, f.GoName, f.Name)
		node.Description, node.MarkdownDescription = plainText(text), text
		properties = append(properties, schemaProperty{f.Name, node})
	}
	return &schemaNode{
		Type: []string{"object", "null"}, Properties: &properties, AdditionalProperties: false,
		Required: []string{"hosts"},
	}, nil
}
