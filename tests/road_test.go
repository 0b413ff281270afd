package tests

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"slices"
	"strings"
	"testing"
)

// decisions are the functions of a compiled policy that a session's start needs.
var decisions = []string{"MakeDirs", "Unready", "RefuseUnconfined", "FirstTime"}

// mayDecide are who calls them: the road itself, and one hint that is shown once
// at the end of a session. Doctor's attacks have policies of their own.
var mayDecide = map[string][]string{
	"session":      decisions,
	"presentation": {"FirstTime"},
}

var mayHavePolicies = []string{"session/plan.go", "cmd/sandbox-sidecar/proof.go"}

// No front door decides whether a session may start, or gives it a policy: only
// what session.Plan admitted is started.
func TestImports_OnlySessionDecides(t *testing.T) {
	t.Parallel()
	called, given := map[string]bool{}, map[string]bool{}
	goFiles(t, func(file string) {
		dir := path.Dir(file)
		if strings.HasSuffix(file, "_test.go") || dir == "spawn" {
			return
		}
		source, err := root.Open(file)
		if err != nil {
			t.Fatal(err)
		}
		defer source.Close()
		parsed, err := parser.ParseFile(token.NewFileSet(), file, source, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.CallExpr:
				name := selected(n.Fun)
				if !slices.Contains(decisions, name) {
					break
				}
				called[dir+" "+name] = true
				if !slices.Contains(mayDecide[dir], name) {
					t.Errorf("%s calls %s, which only package session does", file, name)
				}
			case *ast.AssignStmt:
				for _, to := range n.Lhs {
					if s, is := to.(*ast.SelectorExpr); is && s.Sel.Name == "Policy" && identified(s.X) == "request" {
						given[file] = true
					}
				}
			case *ast.CompositeLit:
				if isRequest(n.Type) && slices.ContainsFunc(n.Elts, setsPolicy) {
					given[file] = true
				}
			}
			return true
		})
	})
	for dir, names := range mayDecide {
		for _, name := range names {
			if !called[dir+" "+name] {
				t.Errorf("control: %s does not call %s: this test sees no calls, or the table is old", dir, name)
			}
		}
	}
	for file := range given {
		if !slices.Contains(mayHavePolicies, file) {
			t.Errorf("%s gives a session a policy, which only session.Start does", file)
		}
	}
	for _, file := range mayHavePolicies {
		if !given[file] {
			t.Errorf("control: %s gives a session no policy: this test does not see it, or the table is old", file)
		}
	}
}

// selected is the name behind the last dot of an expression; "" if there is none.
func selected(e ast.Expr) string {
	if s, is := e.(*ast.SelectorExpr); is {
		return s.Sel.Name
	}
	return ""
}

func identified(e ast.Expr) string {
	if name, is := e.(*ast.Ident); is {
		return name.Name
	}
	return ""
}

// isRequest reports whether a type is spawn.Request.
func isRequest(e ast.Expr) bool {
	s, is := e.(*ast.SelectorExpr)
	return is && s.Sel.Name == "Request" && identified(s.X) == "spawn"
}

func setsPolicy(e ast.Expr) bool {
	pair, is := e.(*ast.KeyValueExpr)
	return is && identified(pair.Key) == "Policy"
}
