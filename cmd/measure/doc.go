// Measure prints how long the lines, comments, sentences, functions, files and
// packages of Go projects are, one project a row, so that a project can be
// compared with others.
//
//	go run ./cmd/measure DIR...
//	go run ./cmd/measure -check [DIR]
//
// With -check it prints what is over the limits of this project instead, each
// with file and line and what to do, and its exit status is 1 if there is
// anything to print.
//
// # What is measured
//
// The files are those that git knows below the directory, or all of them if it
// is no git repository. Generated files are left out, and so are hidden
// directories, testdata, vendor and node_modules.
//
// The width of a line is its number of characters; a tab is one. A comment line
// holds nothing but a comment; directives such as "//go:build" are code. The
// numbers of files, functions and their lines leave tests out; those of lines
// and comments include them. A percentile is a value that occurs (nearest
// rank).
//
// Sentences are those of Markdown prose: paragraphs and list items. Headings,
// code blocks and link targets are left out; a code span is one word. A sentence
// ends at a full stop, an exclamation or a question mark that is followed by a
// capital, a digit or markup, or at the end of its paragraph. What has fewer
// than four words is a label and does not count. The cells of tables count for
// the longest sentence that -check allows, and for nothing else.
//
// "where" for "if" is a guess: see [saysWhereForIf].
package main
