//go:build unix

package main

import (
	"go/ast"
)

// basicKinds are the predeclared types with a counterpart in JSON.
var basicKinds = map[string]Kind{
	"string": KindString, "bool": KindBool, "any": KindAny,
	"int": KindInt, "int8": KindInt, "int16": KindInt, "int32": KindInt, "int64": KindInt,
	"uint": KindInt, "uint8": KindInt, "uint16": KindInt, "uint32": KindInt, "uint64": KindInt,
	"float32": KindNumber, "float64": KindNumber,
}

// typeOf translates a Go type as encoding/json writes it. A type without a clear
// counterpart is an error, so that no field reaches clients as "anything" by
// accident.
func (p *packageParser) typeOf(expr ast.Expr) (Type, error) {
	switch e := expr.(type) {
	case *ast.Ident:
		return p.identType(e)
	case *ast.StarExpr:
		t, err := p.typeOf(e.X)
		t.Nullable = true
		return t, err
	case *ast.ArrayType:
		if id, ok := e.Elt.(*ast.Ident); ok && (id.Name == "byte" || id.Name == "uint8") {
			return Type{Kind: KindBytes}, nil
		}
		elem, err := p.typeOf(e.Elt)
		return Type{Kind: KindList, Elem: &elem}, err
	case *ast.MapType:
		if key, ok := e.Key.(*ast.Ident); !ok || key.Name != "string" {
			return Type{}, p.errorf(e.Pos(), "only strings can be keys of an object")
		}
		elem, err := p.typeOf(e.Value)
		return Type{Kind: KindMap, Elem: &elem}, err
	case *ast.SelectorExpr:
		if x, ok := e.X.(*ast.Ident); ok && x.Name == "json" && e.Sel.Name == "RawMessage" {
			return Type{Kind: KindAny}, nil
		}
	}
	return Type{}, p.errorf(expr.Pos(), "a type without a counterpart in JSON")
}

func (p *packageParser) identType(id *ast.Ident) (Type, error) {
	d := p.types[id.Name]
	if d == nil {
		kind, ok := basicKinds[id.Name]
		if !ok {
			return Type{}, p.errorf(id.Pos(), "%s has no counterpart in JSON", id.Name)
		}
		return Type{Kind: kind}, nil
	}
	// An alias exists only in Go: it has no name on the wire.
	if d.spec.Assign.IsValid() {
		return p.typeOf(d.spec.Type)
	}
	return Type{Kind: KindRef, Ref: id.Name}, p.use(id.Name)
}
