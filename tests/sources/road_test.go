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

// mayChangePolicies are the packages that make policies, complete them, or give
// them what is named at the start. So does one more file, for doctor's attacks.
var (
	mayChangePolicies = []string{"settings", "session", "spawn", "platform"}
	doctorsPolicies   = []string{"cmd/sandbox-sidecar/proof.go", "cmd/sandbox-sidecar/attempt_linux.go"}
)

// No front door changes a policy between the settings and the start.
func TestImports_NoFrontDoorChangesAPolicy(t *testing.T) {
	t.Parallel()
	changed := map[string]bool{}
	goFiles(t, func(file string) {
		if top, _, _ := strings.Cut(file, "/"); strings.HasSuffix(file, "_test.go") || top == "tests" ||
			slices.Contains(mayChangePolicies, top) {
			return
		}
		source, err := fs.ReadFile(root, file)
		if err != nil {
			t.Fatal(err)
		}
		for _, change := range policyChanges(t, file, source) {
			changed[file] = true
			if !slices.Contains(doctorsPolicies, file) {
				t.Errorf("%s: %s changes a policy: only the settings, session.Complete and a start do", file, change)
			}
		}
	})
	for _, file := range doctorsPolicies {
		if !changed[file] {
			t.Errorf("control: %s changes no policy: this test does not see it, or the table is old", file)
		}
	}
	for statement, want := range map[string]int{
		"plan.Policy.OnDenied = x": 1, "plan.Policy = x": 1, "plan.Compiled.Policy.Rules[0].Path = x": 1,
		"a.b().Policy.N++": 1, "p := &plan.Policy; p.Rules = nil": 1, "p := plan.Policy; (*p).Rules = nil": 1,
		"p := policy.Policy{}; _ = p": 1, "var p policy.Policy; p.N |= x": 1, "clear(plan.Policy.Rules)": 1,
		"change(&plan.Policy)": 1, "for i := range q.Rules { q.Rules[i].Path = x }": 1,
		"q.Network.Allowed, x = true, x": 1, "for plan.Policy.OnDenied = range x {}": 1,
		"copy(plan.Policy.Rules, x)": 1, "other := q; other.Restricted = false": 1,
		"x := plan.Policy.Restricted; x = false": 0, "q = nil": 0, "show(plan.Policy)": 0, "p := q; _ = p": 0,
		"spawn.CommandShell(&plan.Policy)": 0,
	} {
		source := "package x; func f(q *policy.Policy) { " + statement + " }"
		if got := len(policyChanges(t, "x.go", []byte(source))); got != want {
			t.Errorf("control: %q changes a policy %d times, and the test sees %d", statement, want, got)
		}
	}
}

// policyChanges lists the expressions of a file by which a policy is made or
// changed. It goes by names, as no other type has a field of the name Policy that
// is changed.
func policyChanges(t *testing.T, file string, source []byte) (changes []string) {
	t.Helper()
	positions := token.NewFileSet()
	parsed, err := parser.ParseFile(positions, file, source, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	names := policyNames(parsed)
	found := func(n ast.Node, is bool) {
		if is {
			changes = append(changes, positions.Position(n.Pos()).String())
		}
	}
	ast.Inspect(parsed, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.AssignStmt:
			for _, to := range n.Lhs {
				found(to, withinPolicy(to, names))
			}
		case *ast.IncDecStmt:
			found(n, withinPolicy(n.X, names))
		case *ast.RangeStmt:
			for _, to := range []ast.Expr{n.Key, n.Value} {
				found(n, to != nil && withinPolicy(to, names))
			}
		case *ast.CompositeLit:
			found(n, isPolicy(n.Type))
		case *ast.CallExpr:
			if name := identified(n.Fun); name == "clear" || name == "copy" {
				found(n, withinPolicy(n.Args[0], names))
			}
			to, is := n.Fun.(*ast.SelectorExpr)
			toOwner := is && slices.Contains(mayChangePolicies, identified(to.X))
			for _, given := range n.Args {
				address, is := given.(*ast.UnaryExpr)
				found(n, is && address.Op == token.AND && !toOwner &&
					(selected(address.X) == "Policy" || names[identified(address.X)]))
			}
		}
		return true
	})
	return changes
}

// policyNames are the variables of a file that are policies, or pointers to them.
func policyNames(file *ast.File) map[string]bool {
	names := map[string]bool{}
	for grown := -1; grown < len(names); { // a variable may be a copy of another one
		grown = len(names)
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.Field:
				for _, name := range n.Names {
					names[name.Name] = names[name.Name] || isPolicy(n.Type)
				}
			case *ast.ValueSpec:
				for _, name := range n.Names {
					names[name.Name] = names[name.Name] || isPolicy(n.Type)
				}
			case *ast.AssignStmt:
				for i := range min(len(n.Lhs), len(n.Rhs)) {
					from := n.Rhs[i]
					if address, is := from.(*ast.UnaryExpr); is && address.Op == token.AND {
						from = address.X
					}
					if name := identified(n.Lhs[i]); name != "" {
						names[name] = names[name] || selected(from) == "Policy" || names[identified(from)]
					}
				}
			}
			return true
		})
	}
	return names
}

// withinPolicy reports whether an expression is a field Policy, or something
// within a policy.
func withinPolicy(e ast.Expr, names map[string]bool) bool {
	for depth := 0; ; depth++ {
		switch n := e.(type) {
		case *ast.SelectorExpr:
			if n.Sel.Name == "Policy" {
				return true
			}
			e = n.X
		case *ast.IndexExpr:
			e = n.X
		case *ast.SliceExpr:
			e = n.X
		case *ast.StarExpr:
			e = n.X
		case *ast.ParenExpr:
			e = n.X
		case *ast.Ident:
			return depth > 0 && names[n.Name]
		default:
			return false
		}
	}
}

// isPolicy reports whether a type is policy.Policy, or a pointer to it.
func isPolicy(e ast.Expr) bool {
	if pointer, is := e.(*ast.StarExpr); is {
		e = pointer.X
	}
	return selected(e) == "Policy" && identified(e.(*ast.SelectorExpr).X) == "policy"
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
