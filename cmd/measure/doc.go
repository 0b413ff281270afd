// Measure prints which lines, comments and sentences of a Go project are longer
// than this project's rules allow: file, line and what to do.
//
//	go run ./cmd/measure [-check=false] [DIR...]
//
// The exit status is 1 if it finds anything, unless -check=false says otherwise.
// It lets strings over several lines, and long strings in tests, be wide: they are
// data. It also lets preformatted comments be as wide as code.
//
// # What is measured
//
// It measures the files that git lists below a directory, or all files if the
// directory is not in a repository. It leaves out generated files, hidden
// directories, testdata, vendor and node_modules.
//
// The width of a line is its number of characters; a tab counts as four. A comment
// line holds only a comment; directives such as "//go:build" are code.
//
// Sentences are those of Markdown prose: paragraphs and list items. Headings,
// code blocks and link targets are left out; a code span is one word. A sentence
// ends at a full stop, an exclamation or a question mark before a capital, a
// digit or markup, or at the end of its paragraph. Text of fewer than four words
// is a label and does not count. Table cells count only for the longest sentence
// that is allowed.
package main
