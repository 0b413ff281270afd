package sources

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"slices"
	"strings"
	"testing"
)

func TestPackages_SayWhatTheyAreFor(t *testing.T) {
	t.Parallel()
	docs := map[string][]string{}
	goFiles(t, func(file string) {
		dir := path.Dir(file)
		if strings.HasSuffix(file, "_test.go") {
			return
		}
		parsed := parse(t, file)
		if _, found := docs[dir]; !found {
			docs[dir] = nil
		}
		if parsed.Doc == nil {
			return
		}
		text := parsed.Doc.Text()
		docs[dir] = append(docs[dir], file)
		starts := []string{"Package " + parsed.Name.Name + " "}
		if name := path.Base(dir); parsed.Name.Name == "main" {
			starts = []string{"Command " + name + " ", strings.ToUpper(name[:1]) + name[1:] + " "}
		}
		if !slices.ContainsFunc(starts, func(start string) bool { return strings.HasPrefix(text, start) }) {
			t.Errorf("%s: the doc of the package begins %.30q, with none of %q", file, text, starts)
		}
	})
	for dir, files := range docs {
		if len(files) != 1 {
			t.Errorf("package %s is documented in %d files %v, not in one", dir, len(files), files)
		}
	}
}

func TestExported_SayWhatTheyMean(t *testing.T) {
	t.Parallel()
	goFiles(t, func(file string) {
		parsed := parse(t, file)
		if strings.HasSuffix(file, "_test.go") || parsed.Name.Name == "main" {
			return
		}
		for _, declaration := range parsed.Decls {
			switch d := declaration.(type) {
			case *ast.FuncDecl:
				if d.Name.IsExported() && isExported(d.Recv) && d.Doc == nil {
					t.Errorf("%s: %s has no doc comment", file, d.Name)
				}
			case *ast.GenDecl:
				checkGroup(t, file, d)
			}
		}
	})
}

// checkGroup accepts one comment for a whole group, as "The verbs.".
func checkGroup(t *testing.T, file string, group *ast.GenDecl) {
	t.Helper()
	for _, spec := range group.Specs {
		switch s := spec.(type) {
		case *ast.TypeSpec:
			if s.Name.IsExported() && group.Doc == nil && s.Doc == nil {
				t.Errorf("%s: %s has no doc comment", file, s.Name)
			}
		case *ast.ValueSpec:
			for _, name := range s.Names {
				if name.IsExported() && group.Doc == nil && s.Doc == nil && s.Comment == nil {
					t.Errorf("%s: %s has no doc comment", file, name)
				}
			}
		}
	}
}

// isExported reports whether a method's receiver is an exported type; a
// function has none.
func isExported(receiver *ast.FieldList) bool {
	if receiver == nil {
		return true
	}
	named := receiver.List[0].Type
	if pointer, ok := named.(*ast.StarExpr); ok {
		named = pointer.X
	}
	if generic, ok := named.(*ast.IndexExpr); ok {
		named = generic.X
	}
	name, ok := named.(*ast.Ident)
	return ok && name.IsExported()
}

func parse(t *testing.T, file string) *ast.File {
	t.Helper()
	source, err := fs.ReadFile(root, file)
	if err != nil {
		t.Fatal(err)
	}
	return parseText(t, string(source))
}

func parseText(t *testing.T, source string) *ast.File {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), "", source, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}
