package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"strings"
	"unicode/utf8"
)

// goFile is what one Go file measures.
type goFile struct {
	name  string
	lines []line
}

// line is a line of a file that is not blank.
type line struct {
	number  int // from 1
	text    string
	comment bool // and nothing else
	data    int  // columns of string literals that cannot be broken well
}

// width is the number of columns, where a tab takes four.
func (l line) width() int {
	return utf8.RuneCountInString(l.text) + (columnsOfTab-1)*strings.Count(l.text, "\t")
}

// isPreformatted reports whether a comment line is code or a table, which cannot
// be wrapped.
func (l line) isPreformatted() bool { return strings.HasPrefix(strings.TrimSpace(l.text), "//\t") }

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
	file := goFile{name: s.name}
	comments := commentLines(set, parsed, s.text)
	for i, text := range strings.Split(strings.TrimSuffix(string(s.text), "\n"), "\n") {
		text = strings.TrimSuffix(text, "\r")
		if strings.TrimSpace(text) == "" {
			continue
		}
		file.lines = append(file.lines, line{number: i + 1, text: text, comment: comments[i+1]})
	}
	data, test := map[int]int{}, strings.HasSuffix(s.name, "_test.go")
	ast.Inspect(parsed, func(n ast.Node) bool {
		if literal, ok := n.(*ast.BasicLit); ok {
			addData(data, set.PositionFor(literal.Pos(), false).Line, literal.Value, test)
		}
		return true
	})
	for i := range file.lines {
		file.lines[i].data = data[file.lines[i].number]
	}
	return file, true
}

// longLiteral is how many columns of test data stay on one line.
const longLiteral = 60

// addData counts the columns that a literal has on each line, if it goes over
// several lines or is long and in a test.
func addData(data map[int]int, first int, literal string, test bool) {
	parts := strings.Split(literal, "\n")
	if len(parts) == 1 && (!test || utf8.RuneCountInString(literal) < longLiteral) {
		return
	}
	for i, part := range parts {
		data[first+i] += utf8.RuneCountInString(part)
	}
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
