//go:build unix

package main

// Package holds the declarations of one Go package that are reachable from its
// roots, in source order.
type Package struct {
	Methods []*Method
	Structs []*Struct
	Enums   []*Enum
	// Named are types that only name another type, such as a map.
	Named []*Named
	Codes []*Code
	// Consts are the exported untyped constants whose value is an integer
	// literal; comments refer to them by name.
	Consts map[string]string
}

// Method is a descriptor variable of type Request or Notification.
type Method struct {
	GoName string
	// Name is the name on the wire.
	Name string
	Doc  string
	// ToEditor reports that the sidecar sends it, not the editor.
	ToEditor bool
	// BothWays reports that either sends it.
	BothWays bool
	Params   string
	// Result is empty for a notification.
	Result string
}

// Struct is an object on the wire or in a settings file.
type Struct struct {
	Name string
	Doc  string
	// Embeds are the structs whose fields are also fields of this object.
	Embeds []string
	Fields []*Field
}

// Field is a field of an object under its JSON name.
type Field struct {
	GoName string
	Name   string
	Doc    string
	Type   Type
	// Optional reports that the field may be absent.
	Optional bool
}

// Enum is a string type with a closed list of values.
type Enum struct {
	Name   string
	Doc    string
	Values []*EnumValue
}

// EnumValue is one value of an enum.
type EnumValue struct {
	GoName string
	Value  string
	Doc    string
}

// Named is a type that only names another type.
type Named struct {
	Name string
	Doc  string
	Type Type
}

// Code is an error code.
type Code struct {
	GoName string
	Value  string
	Doc    string
}

// Kind is the shape of a type.
type Kind int

const (
	// KindString is text.
	KindString Kind = iota
	// KindInt is a whole number.
	KindInt
	// KindNumber is any number.
	KindNumber
	// KindBool is true or false.
	KindBool
	// KindBytes is bytes, written as base64 text.
	KindBytes
	// KindAny is any JSON value.
	KindAny
	// KindRef is a declared type.
	KindRef
	// KindList is an array of Elem.
	KindList
	// KindMap is an object with arbitrary keys and values of Elem.
	KindMap
)

// Type is the type of a field.
type Type struct {
	Kind Kind
	// Ref names the declared type of KindRef.
	Ref string
	// Elem is the element of KindList and KindMap.
	Elem *Type
	// Nullable reports that null is a valid value.
	Nullable bool
}

// structNamed returns a reachable struct, or nil.
func (p *Package) structNamed(name string) *Struct {
	for _, s := range p.Structs {
		if s.Name == name {
			return s
		}
	}
	return nil
}

// enumNamed returns a reachable enum, or nil.
func (p *Package) enumNamed(name string) *Enum {
	for _, e := range p.Enums {
		if e.Name == name {
			return e
		}
	}
	return nil
}

// allFields returns the fields of s in source order, followed by those of its
// embedded structs.
func (p *Package) allFields(s *Struct) []*Field {
	fields := append([]*Field(nil), s.Fields...)
	for _, name := range s.Embeds {
		if e := p.structNamed(name); e != nil {
			fields = append(fields, p.allFields(e)...)
		}
	}
	return fields
}
