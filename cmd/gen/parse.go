//go:build unix

package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// parsePackage reads the declarations of one package that are reachable from the
// method descriptors, the error codes and the named roots. Other types are no
// part of a contract, and may have no counterpart in JSON.
func parsePackage(sources []Source, roots ...string) (*Package, error) {
	p := &packageParser{
		fset:  token.NewFileSet(),
		types: map[string]*typeDecl{},
		used:  map[string]bool{},
		pkg:   &Package{Consts: map[string]string{}},
	}
	for _, src := range sources {
		file, err := parser.ParseFile(p.fset, src.Name, src.Text, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return nil, fmt.Errorf("parse declarations: %w", err)
		}
		p.collectTypes(file)
		p.files = append(p.files, file)
	}
	for _, file := range p.files {
		if err := p.collectValues(file); err != nil {
			return nil, err
		}
	}
	for _, m := range p.pkg.Methods {
		roots = append(roots, m.Params)
		if m.Result != "" {
			roots = append(roots, m.Result)
		}
	}
	for _, name := range roots {
		if err := p.use(name); err != nil {
			return nil, err
		}
	}
	p.finish()
	return p.pkg, nil
}

// typeDecl is a type declaration. Once something uses it, exactly one of the last
// three fields is set.
type typeDecl struct {
	spec   *ast.TypeSpec
	doc    string
	values []*EnumValue
	object *Struct
	enum   *Enum
	named  *Named
}

type packageParser struct {
	fset  *token.FileSet
	files []*ast.File
	types map[string]*typeDecl
	order []string
	used  map[string]bool
	pkg   *Package
}

func (p *packageParser) errorf(pos token.Pos, format string, args ...any) error {
	return fmt.Errorf("read declaration: %s: %w", p.fset.Position(pos), fmt.Errorf(format, args...))
}

func (p *packageParser) collectTypes(file *ast.File) {
	for _, decl := range file.Decls {
		gen, ok := decl.(*ast.GenDecl)
		if !ok || gen.Tok != token.TYPE {
			continue
		}
		for _, s := range gen.Specs {
			spec := s.(*ast.TypeSpec)
			p.types[spec.Name.Name] = &typeDecl{spec: spec, doc: docText(spec.Doc, gen.Doc)}
			p.order = append(p.order, spec.Name.Name)
		}
	}
}

// collectValues reads constants and descriptor variables. The types must have
// been read before.
func (p *packageParser) collectValues(file *ast.File) error {
	for _, decl := range file.Decls {
		gen, ok := decl.(*ast.GenDecl)
		if !ok || gen.Tok != token.CONST && gen.Tok != token.VAR {
			continue
		}
		for _, s := range gen.Specs {
			spec := s.(*ast.ValueSpec)
			if len(spec.Names) != 1 || len(spec.Values) != 1 || !spec.Names[0].IsExported() {
				continue
			}
			// The comment above a group in parentheses belongs to the group, not
			// to a declaration.
			doc := docText(spec.Doc, nil)
			if !gen.Lparen.IsValid() {
				doc = docText(spec.Doc, gen.Doc)
			}
			var err error
			if gen.Tok == token.CONST {
				err = p.addConst(spec, doc)
			} else {
				err = p.addMethod(spec, doc)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

func (p *packageParser) addConst(spec *ast.ValueSpec, doc string) error {
	name := spec.Names[0].Name
	text, kind, literal := literalText(spec.Values[0])
	typeName, typed := spec.Type.(*ast.Ident)
	switch {
	case !typed && literal && kind == token.INT:
		p.pkg.Consts[name] = text
	case !typed || p.types[typeName.Name] == nil:
	case !literal:
		return p.errorf(spec.Pos(), "constant %s has no literal value", name)
	case kind == token.INT && typeName.Name == "Code":
		p.pkg.Codes = append(p.pkg.Codes, &Code{GoName: name, Value: text, Doc: doc})
	case kind == token.STRING:
		d := p.types[typeName.Name]
		d.values = append(d.values, &EnumValue{GoName: name, Value: text, Doc: doc})
	}
	return nil
}

// literalText is the value of a string or number literal, with its sign.
func literalText(expr ast.Expr) (text string, kind token.Token, ok bool) {
	switch e := expr.(type) {
	case *ast.BasicLit:
		if e.Kind != token.STRING {
			return e.Value, e.Kind, true
		}
		s, err := strconv.Unquote(e.Value)
		return s, e.Kind, err == nil
	case *ast.UnaryExpr:
		if s, kind, ok := literalText(e.X); ok && e.Op == token.SUB {
			return "-" + s, kind, true
		}
	}
	return "", 0, false
}

// addMethod adds a variable of the form Request[P, R]{"name", Direction} or
// Notification[P]{…}, with or without field names.
func (p *packageParser) addMethod(spec *ast.ValueSpec, doc string) error {
	lit, ok := spec.Values[0].(*ast.CompositeLit)
	if !ok {
		return nil
	}
	var generic ast.Expr
	var args []ast.Expr
	switch t := lit.Type.(type) {
	case *ast.IndexExpr:
		generic, args = t.X, []ast.Expr{t.Index}
	case *ast.IndexListExpr:
		generic, args = t.X, t.Indices
	}
	kind, ok := generic.(*ast.Ident)
	if !ok || kind.Name != "Request" && kind.Name != "Notification" {
		return nil
	}
	m := &Method{GoName: spec.Names[0].Name, Doc: doc}
	for i, arg := range args {
		id, ok := arg.(*ast.Ident)
		if !ok {
			return p.errorf(arg.Pos(), "%s: params and results must be named types of the package", m.GoName)
		}
		if i == 0 {
			m.Params = id.Name
		} else {
			m.Result = id.Name
		}
	}
	direction := ""
	for i, elem := range lit.Elts {
		field := []string{"Method", "Direction"}[min(i, 1)]
		if kv, ok := elem.(*ast.KeyValueExpr); ok {
			field, elem = kv.Key.(*ast.Ident).Name, kv.Value
		}
		switch field {
		case "Method":
			m.Name, _, _ = literalText(elem)
		case "Direction":
			if id, ok := elem.(*ast.Ident); ok {
				direction = id.Name
			}
		}
	}
	if m.Name == "" || !slices.Contains([]string{"ToSidecar", "ToEditor", "BothWays"}, direction) {
		return p.errorf(spec.Pos(), "%s: want a literal method name, and ToSidecar, ToEditor or BothWays", m.GoName)
	}
	m.ToEditor, m.BothWays = direction == "ToEditor", direction == "BothWays"
	p.pkg.Methods = append(p.pkg.Methods, m)
	return nil
}

// use marks a declared type as reachable and reads it.
func (p *packageParser) use(name string) error {
	if p.used[name] {
		return nil
	}
	d := p.types[name]
	if d == nil {
		return fmt.Errorf("read declaration: %s: no such type in the package", name)
	}
	p.used[name] = true
	if st, ok := d.spec.Type.(*ast.StructType); ok {
		d.object = &Struct{Name: name, Doc: d.doc}
		return p.readFields(d.object, st)
	}
	if len(d.values) > 0 {
		d.enum = &Enum{Name: name, Doc: d.doc, Values: d.values}
		return nil
	}
	t, err := p.typeOf(d.spec.Type)
	if err != nil {
		return err
	}
	d.named = &Named{Name: name, Doc: d.doc, Type: t}
	return nil
}

func (p *packageParser) readFields(s *Struct, st *ast.StructType) error {
	for _, f := range st.Fields.List {
		tag := ""
		if f.Tag != nil {
			raw, err := strconv.Unquote(f.Tag.Value)
			if err != nil {
				return p.errorf(f.Pos(), "tag of a field: %w", err)
			}
			tag = reflect.StructTag(raw).Get("json")
		}
		name, options, _ := strings.Cut(tag, ",")
		if len(f.Names) == 0 && name == "" {
			id, ok := f.Type.(*ast.Ident)
			if !ok {
				return p.errorf(f.Pos(), "%s: an embedded type must be a struct of the package", s.Name)
			}
			if err := p.use(id.Name); err != nil {
				return err
			}
			s.Embeds = append(s.Embeds, id.Name)
			continue
		}
		if name == "-" || len(f.Names) > 0 && !f.Names[0].IsExported() {
			continue
		}
		if len(f.Names) != 1 || name == "" {
			return p.errorf(f.Pos(), "%s: each field stands alone and has a JSON name", s.Name)
		}
		t, err := p.typeOf(f.Type)
		if err != nil {
			return err
		}
		optional := strings.Contains(","+options+",", ",omitempty,") || strings.Contains(","+options+",", ",omitzero,")
		if optional {
			// A nil pointer is omitted, so the value is never null.
			t.Nullable = false
		}
		s.Fields = append(s.Fields, &Field{
			GoName: f.Names[0].Name, Name: name, Doc: docText(f.Doc, f.Comment), Type: t,
			Optional: optional,
		})
	}
	return nil
}

// finish adds the reachable declarations to the package, in source order.
func (p *packageParser) finish() {
	for _, name := range p.order {
		d := p.types[name]
		switch {
		case d.object != nil:
			p.pkg.Structs = append(p.pkg.Structs, d.object)
		case d.enum != nil:
			p.pkg.Enums = append(p.pkg.Enums, d.enum)
		case d.named != nil:
			p.pkg.Named = append(p.pkg.Named, d.named)
		}
	}
}

// docText is the text of the first comment that is not empty, with one line a
// paragraph.
func docText(groups ...*ast.CommentGroup) string {
	for _, g := range groups {
		if text := strings.TrimSpace(g.Text()); text != "" {
			return unwrap(text)
		}
	}
	return ""
}
