package main

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// printTables prints the two tables as Markdown that is readable as it is.
func printTables(out io.Writer, projects []project) error {
	words := [][]string{{
		"words", "median comment width", "Go lines over 120", "comment lines over 85",
		`"where" for "if"`, "README words a sentence: median / p90 / longest",
	}}
	house := [][]string{{
		"house", "files", "most files in a package", "median file", "function lines: median / p90 / max",
		"comment : code",
	}}
	for _, p := range projects {
		words = append(words, wordsRow(p))
		house = append(house, houseRow(p))
	}
	_, err := fmt.Fprintf(out, "%s\n%s", align(words), align(house))
	return err
}

func wordsRow(p project) []string {
	sums := p.sumLines()
	readme := prose(p.readme().sentences)
	sentences := "–"
	if len(readme) > 0 {
		sentences = three(readme)
	}
	return []string{
		p.name,
		fmt.Sprint(median(sums.commentWidths)),
		fmt.Sprintf("%.1f %%", share(sums.over, sums.code+sums.comments)),
		fmt.Sprintf("%d of %d", sums.commentsOver, sums.comments),
		fmt.Sprintf("%d of %d", sums.where, sums.comments),
		sentences,
	}
}

func houseRow(p project) []string {
	dir, most := p.largest()
	files, functions := p.shape()
	sums := p.sumLines()
	return []string{
		p.name,
		fmt.Sprint(len(files)),
		fmt.Sprintf("%d (%s)", most, dir),
		fmt.Sprint(median(files)),
		three(functions),
		fmt.Sprintf("%.2f", share(sums.comments, sums.code)/100),
	}
}

// three is the median, the 90th percentile and the largest of some values.
func three(values []int) string {
	return fmt.Sprintf("%d / %d / %d", median(values), percentile(values, 90), percentile(values, 100))
}

// align pads the cells of a table, whose first row is its head.
func align(rows [][]string) string {
	widths := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	var text strings.Builder
	for i, row := range rows {
		for j, cell := range row {
			fmt.Fprintf(&text, "| %-*s ", widths[j], cell)
		}
		text.WriteString("|\n")
		if i == 0 {
			for _, width := range widths {
				text.WriteString("|" + strings.Repeat("-", width+2))
			}
			text.WriteString("|\n")
		}
	}
	return text.String()
}
