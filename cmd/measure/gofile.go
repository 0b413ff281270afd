package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"regexp"
	"strings"
	"unicode/utf8"
)

// goFile is what one Go file measures.
type goFile struct {
	name      string
	test      bool
	code      int // lines that are neither blank nor a comment
	lines     []line
	functions []int // lines of each, from its signature to its closing brace
}

// line is a line of a file that is not blank.
type line struct {
	number  int // from 1
	text    string
	comment bool // and nothing else
}

func (l line) width() int { return utf8.RuneCountInString(l.text) }

// generated is the line that the Go project has agreed on.
var generated = regexp.MustCompile(`(?m)^// Code generated .* DO NOT EDIT\.$`)

// directive is a comment that is for a program.
var directive = regexp.MustCompile(`^//(line |export |nolint|[a-z0-9]+:[a-z0-9])|^// \+build `)

// measureGo reports false for a generated file, and for one that is no Go.
func measureGo(s source) (goFile, bool) {
	set := token.NewFileSet()
	parsed, err := parser.ParseFile(set, s.name, s.text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil || generated.Match(s.text) {
		return goFile{}, false
	}
	file := goFile{name: s.name, test: strings.HasSuffix(path.Base(s.name), "_test.go")}
	comments := commentLines(set, parsed, s.text)
	for i, text := range strings.Split(strings.TrimSuffix(string(s.text), "\n"), "\n") {
		text = strings.TrimSuffix(text, "\r")
		if strings.TrimSpace(text) == "" {
			continue
		}
		file.lines = append(file.lines, line{i + 1, text, comments[i+1]})
		if !comments[i+1] {
			file.code++
		}
	}
	ast.Inspect(parsed, func(n ast.Node) bool {
		if f, ok := n.(*ast.FuncDecl); ok && f.Body != nil {
			file.functions = append(file.functions, set.Position(f.End()).Line-set.Position(f.Pos()).Line+1)
		}
		return true
	})
	return file, true
}

// commentLines are the numbers of the lines that begin with a comment or lie
// inside of one.
func commentLines(set *token.FileSet, parsed *ast.File, text []byte) map[int]bool {
	is := map[int]bool{}
	for _, group := range parsed.Comments {
		for _, comment := range group.List {
			if directive.MatchString(comment.Text) {
				continue
			}
			// Positions without regard to "//line" directives.
			first, last := set.PositionFor(comment.Pos(), false), set.PositionFor(comment.End(), false)
			start := first.Offset - (first.Column - 1)
			for n := first.Line; n <= last.Line; n++ {
				is[n] = n > first.Line || strings.TrimSpace(string(text[start:first.Offset])) == ""
			}
		}
	}
	return is
}
