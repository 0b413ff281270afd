package sources

import (
	"go/ast"
	"go/token"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// readsBase are the other files that read a variable of the XDG base directory
// specification, with why: none of it leads to a file of the sidecar's.
var readsBase = map[string]string{
	"lifecycle/cgroup/userbus_linux.go": "the bus of the user's systemd",
	"platform/policy/daemons.go":        "sockets of the user's daemons",
	"spawn/daemons.go":                  "sockets of the user's daemons",
	"spawn/runtime_linux.go":            "what a session's own directory is called in it",
	"spawn/runtime_darwin.go":           "what a session's own directory is called in it",
	"settings/document/defaults.go":     "variables that sessions get",
	"settings/git/find.go":              "git's configuration",
	"settings/git/ask_unix.go":          "git's configuration",
	"settings/risks/moved.go":           "places of other programs, which these move",
	"settings/sensitive/private.go":     "places of other programs, which these move",
}

// Where the sidecar keeps its files is said by one package, so that what
// protects them and what writes them mean the same.
func TestPackages_LetPlacesSayWhereFilesAre(t *testing.T) {
	t.Parallel()
	used, own := map[string]bool{}, 0
	goFiles(t, func(file string) {
		top, _, _ := strings.Cut(file, "/")
		if strings.HasSuffix(file, "_test.go") || top == "tests" || top == "clients" {
			return
		}
		for _, at := range namesPlaces(parse(t, file)) {
			switch {
			case path.Dir(file) == "places":
				own++
			case readsBase[file] != "" && strings.HasPrefix(at, "XDG_"):
				used[file] = true
			default:
				t.Errorf("%s: %q leads to files of the sidecar's: ask package places", file, at)
			}
		}
	})
	for file := range readsBase {
		if !used[file] {
			t.Errorf("%s reads no such variable: take it off the table", file)
		}
	}
	if own < 5 {
		t.Errorf("package places reads %d variables: this test finds nothing", own)
	}
}

// namesPlaces lists the strings of a file that are a variable of the XDG
// specification, or a part of a path that is named after the sidecar.
func namesPlaces(file *ast.File) []string {
	var found []string
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BasicLit:
			if text := unquoted(n); strings.HasPrefix(text, "XDG_") && !strings.Contains(text, " ") {
				if strings.HasSuffix(text, "_HOME") || text == "XDG_RUNTIME_DIR" {
					found = append(found, text)
				}
			}
		case *ast.CallExpr:
			if function, ok := n.Fun.(*ast.SelectorExpr); !ok || function.Sel.Name != "Join" {
				return true
			}
			for _, argument := range n.Args {
				parts := strings.Split(unquoted(argument), "/")
				if slices.Contains(parts, "sandbox-sidecar") {
					found = append(found, unquoted(argument))
				}
			}
		}
		return true
	})
	return found
}

// unquoted is the text of a string literal; "" of anything else.
func unquoted(of ast.Expr) string {
	literal, ok := of.(*ast.BasicLit)
	if !ok || literal.Kind != token.STRING {
		return ""
	}
	text, err := strconv.Unquote(literal.Value)
	if err != nil {
		return ""
	}
	return text
}

func TestPackages_NamesPlacesSeesThem(t *testing.T) {
	t.Parallel()
	for source, want := range map[string]int{
		`var _ = os.Getenv("XDG_STATE_HOME")`:                       1,
		`var _ = filepath.Join(home, ".cache", "sandbox-sidecar")`:  1,
		`var _ = filepath.Join(home, ".cache/sandbox-sidecar/x")`:   1,
		`var _ = errors.New("set XDG_STATE_HOME")`:                  0,
		`var _ = filepath.Join(home, ".cache", "sandbox-sidecars")`: 0,
		`var _ = []string{"sandbox-sidecar", "stage"}`:              0,
	} {
		if got := namesPlaces(parseText(t, "package a\n"+source)); len(got) != want {
			t.Errorf("%s: %q, want %d", source, got, want)
		}
	}
}
