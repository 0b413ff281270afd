package main

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// fewestWords make a sentence; what is shorter is a label.
const fewestWords = 4

// codeWord stands for a code span, which counts as one word.
const codeWord = "`code`"

var (
	codeSpan  = regexp.MustCompile("(?s)``.+?``|`[^`]+`")
	lineBreak = regexp.MustCompile(`<br */?>`)
	image     = regexp.MustCompile(`(?s)!\[[^\]]*\](\([^)]*\)|\[[^\]]*\])`)
	link      = regexp.MustCompile(`(?s)\[([^\]]*)\](\([^)]*\)|\[[^\]]*\])`)
	address   = regexp.MustCompile(`<?https?://[^\s>)]+>?`)
	tag       = regexp.MustCompile(`(?s)</?[a-zA-Z][^>]*>`)
	stop      = regexp.MustCompile("[.!?][\"')\\]*_”’]*$")
)

// abbreviations end in a full stop and end no sentence.
var abbreviations = []string{"e.g.", "i.e.", "cf.", "vs.", "etc.", "incl.", "approx.", "no."}

// onlyLineEnds keeps the line ends of a text, so that what follows keeps its
// line's number.
func onlyLineEnds(text string) string { return strings.Repeat("\n", strings.Count(text, "\n")) }

// plain is the text of Markdown as a reader sees it, with its line ends.
func plain(text string) string {
	text = codeSpan.ReplaceAllStringFunc(text, func(s string) string { return codeWord + onlyLineEnds(s) })
	text = image.ReplaceAllStringFunc(text, onlyLineEnds)
	text = link.ReplaceAllStringFunc(text, func(s string) string {
		shown := link.FindStringSubmatch(s)[1]
		return shown + onlyLineEnds(strings.TrimPrefix(s, "["+shown))
	})
	text = address.ReplaceAllString(text, codeWord)
	return tag.ReplaceAllStringFunc(text, onlyLineEnds)
}

// sentences splits a passage.
func sentences(p passage) []sentence {
	var found []sentence
	var open sentence
	var start []string
	finish := func() {
		if open.words >= fewestWords {
			open.start, open.cell = strings.Join(start, " "), p.cell
			found = append(found, open)
		}
		open, start = sentence{}, nil
	}
	number := p.line
	for _, line := range strings.Split(plain(p.text), "\n") {
		for _, word := range strings.Fields(line) {
			if begins(word) && len(start) > 0 && ends(start[len(start)-1]) {
				finish()
			}
			if open.words == 0 {
				open.line = number
			}
			if isWord(word) {
				open.words++
			}
			start = append(start, word)
		}
		number++
	}
	finish()
	return found
}

func isWord(text string) bool {
	return strings.ContainsFunc(text, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) })
}

// begins reports whether a word can begin a sentence.
func begins(word string) bool {
	first, _ := utf8.DecodeRuneInString(word)
	return !unicode.IsLower(first)
}

func ends(word string) bool {
	bare := strings.ToLower(strings.Trim(word, `"'()*_[]`))
	return stop.MatchString(word) && !slices.Contains(abbreviations, bare)
}
