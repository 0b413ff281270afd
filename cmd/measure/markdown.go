package main

import (
	"regexp"
	"strings"
)

// mdFile is what one Markdown file measures.
type mdFile struct {
	name      string
	generated bool
	sentences []sentence
}

// sentence is a sentence of prose.
type sentence struct {
	line  int // of its first word, from 1
	words int
	cell  bool   // of a table
	start string // its first words
}

func measureMarkdown(s source) mdFile {
	file := mdFile{name: s.name, generated: strings.Contains(string(s.text), "DO NOT EDIT.")}
	for _, p := range passages(string(s.text)) {
		file.sentences = append(file.sentences, sentences(p)...)
	}
	return file
}

// prose is the words of each sentence that is not in a table, whose cells are
// too short to be compared with those of others.
func prose(all []sentence) []int {
	var words []int
	for _, s := range all {
		if !s.cell {
			words = append(words, s.words)
		}
	}
	return words
}

// passage is a paragraph, a list item or a table cell.
type passage struct {
	line int
	text string
	cell bool // of a table
}

var (
	fence     = regexp.MustCompile("^\\s*(```+|~~~+)")
	heading   = regexp.MustCompile(`^ {0,3}#{1,6}(\s|$)`)
	underline = regexp.MustCompile(`^\s*(=+|-+|[*_](\s*[*_]){2,})\s*$`)
	listItem  = regexp.MustCompile(`^\s*([-*+]|\d+[.)])\s+(\[[ xX]\]\s+)?`)
	reference = regexp.MustCompile(`^ {0,3}\[[^\]]+\]:\s`)
	quote     = regexp.MustCompile(`^ {0,3}(>\s?)+(\[![A-Z]+\]\s*$)?`)
	tableRule = regexp.MustCompile(`^[\s|:-]+$`)
	hidden    = regexp.MustCompile(`(?s)<!--.*?-->`)
)

// passages finds the prose of a Markdown document.
func passages(text string) []passage {
	// What is hidden keeps its line ends, so that lines keep their numbers.
	text = hidden.ReplaceAllStringFunc(text, onlyLineEnds)
	r := mdReader{}
	for i, line := range strings.Split(text, "\n") {
		r.read(i+1, strings.TrimSuffix(line, "\r"))
	}
	r.flush()
	return r.done
}

type mdReader struct {
	done   []passage
	open   []string // the lines of the paragraph that is being read
	first  int      // the number of its first line
	fence  string   // what ends the code block that is being read
	inList bool     // indented lines go on with an item, and are no code
}

func (r *mdReader) read(number int, line string) {
	if r.fence != "" {
		if strings.HasPrefix(strings.TrimSpace(line), r.fence) {
			r.fence = ""
		}
		return
	}
	line = quote.ReplaceAllString(line, "")
	switch {
	case fence.MatchString(line):
		r.flush()
		r.fence = fence.FindStringSubmatch(line)[1]
	case strings.TrimSpace(line) == "":
		r.flush()
	case heading.MatchString(line), reference.MatchString(line):
		r.flush()
		r.inList = false
	case underline.MatchString(line):
		r.open = nil // what stands above is a heading
	case strings.HasPrefix(strings.TrimSpace(line), "|"):
		r.flush()
		r.row(number, line)
	case listItem.MatchString(line):
		r.flush()
		r.inList = true
		r.add(number, listItem.ReplaceAllString(line, ""))
	case len(r.open) == 0 && !r.inList && (strings.HasPrefix(line, "    ") || line[0] == '\t'):
		// an indented code block
	default:
		r.inList = r.inList && (len(r.open) > 0 || line[0] == ' ' || line[0] == '\t')
		r.add(number, line)
	}
}

func (r *mdReader) add(number int, line string) {
	if len(r.open) == 0 {
		r.first = number
	}
	r.open = append(r.open, line)
}

func (r *mdReader) flush() {
	if len(r.open) > 0 {
		r.done = append(r.done, passage{line: r.first, text: strings.Join(r.open, "\n")})
	}
	r.open = nil
}

// row takes each cell of a table for a passage.
func (r *mdReader) row(number int, line string) {
	if tableRule.MatchString(line) {
		return
	}
	line = codeSpan.ReplaceAllString(line, codeWord) // can hold a "|"
	line = strings.ReplaceAll(line, `\|`, "")
	for _, cell := range strings.Split(line, "|") {
		for _, part := range lineBreak.Split(cell, -1) {
			r.done = append(r.done, passage{line: number, text: part, cell: true})
		}
	}
}
