package display

import (
	"io"
	"strings"

	"github.com/rivo/uniseg"
)

// Columns is how many columns an answer on a terminal may take.
const Columns = 80

// Fold breaks a line at blanks, so that it fits into Columns. Every further
// line starts with hang blanks. What is in quotation marks or backquotes stays
// whole, because it is there to be copied; so a long path can exceed Columns.
func Fold(line string, hang int) string {
	if Width(line) <= Columns {
		return line
	}
	text := strings.TrimLeft(line, " ")
	var b strings.Builder
	b.WriteString(line[:len(line)-len(text)])
	at, gap := b.Len(), "" // gap is the blanks before text
	for text != "" {
		unit := firstUnit(text)
		width := Width(unit)
		if gap != "" && at+len(gap)+width > Columns {
			gap, at = "\n"+strings.Repeat(" ", hang), -1
		}
		b.WriteString(gap + unit)
		at += len(gap) + width
		rest := strings.TrimLeft(text[len(unit):], " ")
		gap, text = text[len(unit):len(text)-len(rest)], rest
	}
	return b.String()
}

// Width is how many columns a text takes on a terminal.
func Width(s string) int { return uniseg.StringWidth(s) }

// firstUnit is what must stay on one line: the text up to the first blank
// outside of quotation marks and backquotes. A mark without a partner quotes
// nothing.
func firstUnit(text string) string {
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case ' ':
			return text[:i]
		case '"', '`':
			i += max(quotation(text[i:])-1, 0)
		}
	}
	return text
}

// quotation is the length of the quotation that a text starts with, or 0.
func quotation(text string) int {
	for i := 1; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case text[0]:
			return i + 1
		}
	}
	return 0
}

// Folding passes what is written to it to w, with each line folded. Further
// lines are indented by two columns more than the first. Each Write must
// contain whole lines; only a prompt at the end of one may lack a line end.
func Folding(w io.Writer) io.Writer { return folding{w} }

type folding struct{ to io.Writer }

func (w folding) Write(text []byte) (int, error) {
	lines := strings.Split(string(text), "\n")
	for i, line := range lines {
		indent := len(line) - len(strings.TrimLeft(line, " "))
		lines[i] = Fold(line, min(indent+2, Columns/2))
	}
	if _, err := io.WriteString(w.to, strings.Join(lines, "\n")); err != nil {
		return 0, err
	}
	return len(text), nil
}
