package main

import (
	"cmp"
	"fmt"
	"slices"
)

// The limits of this project.
const (
	columnsOfTab       = 4
	mostColumns        = 120
	mostCommentColumns = 85
	mostWords          = 45 // of any sentence
	mostWordsNinety    = 30 // of nine sentences in ten, in each file
)

// findings are what is over a limit, each "file:line: what: what to do".
func findings(p project) []string {
	var all []string
	for _, file := range p.gos {
		all = append(all, wideLines(file)...)
	}
	for _, file := range p.mds {
		all = append(all, longSentences(file)...)
	}
	return all
}

func wideLines(file goFile) []string {
	var all []string
	for _, l := range file.lines {
		switch {
		case l.comment && !l.isPreformatted() && l.width() > mostCommentColumns:
			all = append(all, fmt.Sprintf("%s:%d: comment of %d columns, at most %d (better 80): wrap it",
				file.name, l.number, l.width(), mostCommentColumns))
		case l.width()-l.data > mostColumns:
			all = append(all, fmt.Sprintf("%s:%d: line of %d columns, at most %d: break it",
				file.name, l.number, l.width(), mostColumns))
		}
	}
	return all
}

// longSentences names each sentence over mostWords and, if there are too many
// over mostWordsNinety, the longest of those.
func longSentences(file mdFile) []string {
	var all []string
	remedy := "split it, one claim a sentence"
	if file.generated {
		remedy += " (the file is generated: change the doc comment or template it comes from)"
	}
	report := func(s sentence, most string) {
		all = append(all, fmt.Sprintf("%s:%d: sentence of %d words, %s: %s: %q",
			file.name, s.line, s.words, most, remedy, shortened(s.start)))
	}
	over := slices.DeleteFunc(slices.Clone(file.sentences), func(s sentence) bool {
		return s.words <= mostWordsNinety || s.cell && s.words <= mostWords
	})
	slices.SortStableFunc(over, func(a, b sentence) int { return cmp.Compare(b.words, a.words) })
	// So many have to be shortened until the 90th percentile is within bounds.
	tooMany := len(over) - len(prose(file.sentences))/10
	for i, s := range over {
		switch {
		case s.words > mostWords:
			report(s, fmt.Sprintf("at most %d", mostWords))
		case i < tooMany:
			report(s, fmt.Sprintf("and only one in ten may have more than %d", mostWordsNinety))
		}
	}
	return all
}

// shortened is the beginning of a sentence.
func shortened(text string) string {
	if runes := []rune(text); len(runes) > 60 {
		return string(runes[:60]) + "…"
	}
	return text
}
