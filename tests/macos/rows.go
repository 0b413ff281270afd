package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// row is one thing that was compared with its golden.
type row struct {
	what, want, got string
	// said is what explains a difference: the last lines of output.
	said string
}

func (r row) differs() bool { return r.want != r.got }

// writeRows writes a table of all rows to a file, and those that differ to out.
// The error is errDiffers if one does, or if there is none at all.
func writeRows(rows []row, path string, out io.Writer) error {
	var text strings.Builder
	text.WriteString("verdict\twhat\twant\tgot\tsaid\n")
	different := 0
	for _, r := range rows {
		verdict := "same"
		if r.differs() {
			verdict = "differs"
			different++
			fmt.Fprintf(out, "differs: %s: want %s, got %s: %s\n", r.what, r.want, r.got, oneLine(r.said))
		}
		fmt.Fprintf(&text, "%s\t%s\t%s\t%s\t%s\n", verdict, oneLine(r.what), r.want, oneLine(r.got), oneLine(r.said))
	}
	fmt.Fprintf(out, "%d rows, %d differ\n", len(rows), different)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(path, []byte(text.String()), 0o644); err != nil {
		return err
	}
	if different > 0 || len(rows) == 0 {
		return errDiffers
	}
	return nil
}

// oneLine is a text as a cell of a table.
func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// tableLines are the lines of a golden table, without comments. A line that
// begins with a tab goes on with the one before it, after a blank.
func tableLines(text string) []string {
	var lines []string
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		switch {
		case line == "" || strings.HasPrefix(line, "#"):
		case strings.HasPrefix(line, "\t") && len(lines) > 0:
			lines[len(lines)-1] += " " + strings.TrimSpace(line)
		default:
			lines = append(lines, line)
		}
	}
	return lines
}
