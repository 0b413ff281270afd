package messages

import (
	"go/ast"
	"go/parser"
	"go/token"
	"strconv"
	"strings"
	"testing"
)

// message is a text that a user can see.
type message struct {
	file string
	line int
	// where is what takes the text: a function, a field, or what it is a part
	// of.
	where string
	text  string
}

// firstLine is what is shown before anybody asks for more.
func (m message) firstLine() string {
	line, _, _ := strings.Cut(strings.TrimSpace(m.text), "\n")
	return line
}

// goMessages collects the prose of a Go file: each literal, or sum of literals
// and values, that has at least two words. A value counts as "%s".
func goMessages(t *testing.T, name string, source []byte) []message {
	t.Helper()
	set := token.NewFileSet()
	parsed, err := parser.ParseFile(set, name, source, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	var found []message
	var path []ast.Node
	ast.Inspect(parsed, func(n ast.Node) bool {
		if n == nil {
			path = path[:len(path)-1]
			return true
		}
		if text, is := folded(n); is {
			if where := takenBy(path, n); where != "" && isProse(text) {
				found = append(found, message{name, set.Position(n.Pos()).Line, where, text})
			}
			if _, literal := n.(*ast.BasicLit); !literal {
				return false // its parts are in its text
			}
		}
		path = append(path, n)
		return true
	})
	return found
}

// folded is the text of a literal or of a sum that has one.
func folded(n ast.Node) (string, bool) {
	switch e := n.(type) {
	case *ast.BasicLit:
		if e.Kind == token.STRING {
			text, err := strconv.Unquote(e.Value)
			return text, err == nil
		}
	case *ast.ParenExpr:
		return folded(e.X)
	case *ast.BinaryExpr:
		left, isLeft := folded(e.X)
		right, isRight := folded(e.Y)
		if e.Op != token.ADD || !isLeft && !isRight {
			return "", false
		}
		return textOr(left, isLeft) + textOr(right, isRight), true
	}
	return "", false
}

func textOr(text string, is bool) string {
	if is {
		return text
	}
	return "%s"
}

// takenBy names what takes a text; it is empty for what no user sees.
func takenBy(path []ast.Node, n ast.Node) string {
	for i := len(path) - 1; i >= 0; i-- {
		switch parent := path[i].(type) {
		case *ast.ImportSpec, *ast.Field: // a struct's tag
			return ""
		case *ast.CallExpr:
			if parent.Fun == n || i+1 < len(path) && path[i+1] == parent.Fun {
				return ""
			}
			return called(parent.Fun)
		case *ast.KeyValueExpr:
			if key, ok := parent.Key.(*ast.Ident); ok {
				return key.Name
			}
		case *ast.AssignStmt:
			if field, ok := parent.Lhs[0].(*ast.SelectorExpr); ok {
				return field.Sel.Name
			}
			return "variable"
		case *ast.ValueSpec:
			return parent.Names[0].Name
		case *ast.ReturnStmt:
			return "return"
		case *ast.FuncDecl:
			return "other"
		}
	}
	return "other"
}

// called is the name of a function, empty for one whose texts no user sees.
func called(function ast.Expr) string {
	var name string
	switch f := function.(type) {
	case *ast.Ident:
		name = f.Name
	case *ast.SelectorExpr:
		name = f.Sel.Name
		if of, ok := f.X.(*ast.Ident); ok {
			name = of.Name + "." + name
		}
	}
	if name == "panic" || strings.HasPrefix(name, "regexp.") || strings.HasPrefix(name, "strings.") {
		return ""
	}
	if name == "" {
		return "call"
	}
	return name
}

// isProse reports whether a text has two words in a row.
func isProse(text string) bool {
	words := 0
	for _, word := range strings.Fields(text) {
		letters := strings.Trim(word, `"'.,:;!?()%`)
		isWord := len(letters) > 1 && !strings.ContainsFunc(letters, func(r rune) bool {
			return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && r != '-' && r != '\''
		})
		if !isWord {
			words = 0
			continue
		}
		if words++; words == 2 {
			return true
		}
	}
	return false
}
