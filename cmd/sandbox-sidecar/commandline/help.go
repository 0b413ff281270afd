package commandline

import (
	"fmt"
	"io"
	"strings"

	"github.com/sandbox-sidecar/sandbox-sidecar/display"
)

// Help writes the help of the program: its commands.
func (p Program) Help(w io.Writer) {
	fmt.Fprintln(w, display.Fold(p.Summary, 0))
	fmt.Fprintf(w, "\nusage: %s COMMAND [ARG…]\n\n", p.Name)
	var rows [][2]string
	for _, c := range p.Commands {
		rows = append(rows, [2]string{c.Name, c.Summary})
	}
	writeRows(w, rows)
	for _, text := range paragraphs(p.Details) {
		fmt.Fprintf(w, "\n%s\n", display.Fold(text, 0))
	}
}

// CommandHelp writes the help of one command.
func (p Program) CommandHelp(w io.Writer, c Command) {
	p.Usage(w, c)
	for _, text := range append([]string{sentence(c.Summary)}, paragraphs(c.Details)...) {
		fmt.Fprintf(w, "\n%s\n", display.Fold(text, 0))
	}
	var rows [][2]string
	for _, o := range c.options() {
		rows = append(rows, [2]string{o.synopsis(), o.usage})
	}
	fmt.Fprintln(w)
	writeRows(w, rows)
}

// Usage writes the synopsis of a command.
func (p Program) Usage(w io.Writer, c Command) {
	fmt.Fprintln(w, display.Fold(strings.TrimRight("usage: "+p.Name+" "+c.Name+" "+c.Args, " "), 2))
}

// mostLabel is the width from which a row's label has a line of its own.
const mostLabel = 26

// writeRows writes labels with their texts beside them.
func writeRows(w io.Writer, rows [][2]string) {
	column := 0
	for _, row := range rows {
		if width := display.Width(row[0]); width <= mostLabel {
			column = max(column, width)
		}
	}
	for _, row := range rows {
		space := column - display.Width(row[0])
		if space < 0 {
			fmt.Fprintf(w, "  %s\n", row[0])
			row[0], space = "", column
		}
		fmt.Fprintln(w, display.Fold("  "+row[0]+strings.Repeat(" ", space+2)+row[1], column+4))
	}
}

// sentence is a summary as a sentence.
func sentence(summary string) string {
	if summary == "" {
		return ""
	}
	return strings.ToUpper(summary[:1]) + summary[1:] + "."
}
