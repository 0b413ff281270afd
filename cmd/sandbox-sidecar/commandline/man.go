package commandline

import (
	"fmt"
	"io"
	"strings"
)

// Man writes the manual page, for man(1), in the macros of man(7).
func (p Program) Man(w io.Writer) {
	// Without a date: the same sources give the same page.
	fmt.Fprintf(w, ".TH %s 1 \"\" %s\n", quoteRoff(strings.ToUpper(p.Name)), quoteRoff(p.Name+" "+p.Version))
	fmt.Fprintf(w, ".SH NAME\n%s \\- %s\n", roff(p.Name), roff(strings.TrimSuffix(strings.TrimPrefix(p.Summary,
		p.Name+" "), ".")))
	fmt.Fprintf(w, ".SH SYNOPSIS\n.B %s\n.I COMMAND\n[ARG\\&...]\n", roff(p.Name))
	fmt.Fprintf(w, ".SH DESCRIPTION\n%s\n", roff(p.Summary))
	for _, text := range paragraphs(p.Details) {
		fmt.Fprintf(w, ".PP\n%s\n", roff(text))
	}
	section(w, "EXAMPLES", p.Examples)
	fmt.Fprint(w, ".SH COMMANDS\n")
	for _, c := range p.Commands {
		fmt.Fprintf(w, ".SS %s\n%s\n", quoteRoff(strings.TrimSpace(c.Name+" "+c.Args)), roff(sentence(c.Summary)))
		for _, text := range paragraphs(c.Details) {
			fmt.Fprintf(w, ".PP\n%s\n", roff(text))
		}
		for _, o := range c.options() {
			if o.name == "help" {
				continue
			}
			fmt.Fprintf(w, ".TP\n\\fB%s\\fR", roff(o.dashes()))
			if o.placeholder != "" {
				fmt.Fprintf(w, " \\fI%s\\fR", roff(o.placeholder))
			}
			fmt.Fprintf(w, "\n%s\n", roff(o.usage))
		}
	}
	section(w, "EXIT STATUS", p.Statuses)
	section(w, "FILES", p.Files)
}

// section writes labels with what they mean; nothing if there are none.
func section(w io.Writer, title string, rows [][2]string) {
	if len(rows) > 0 {
		fmt.Fprintf(w, ".SH %s\n", quoteRoff(title))
	}
	for _, row := range rows {
		fmt.Fprintf(w, ".TP\n\\fB%s\\fR\n%s\n", roff(row[0]), roff(row[1]))
	}
}

// roff escapes text for roff(7).
func roff(text string) string {
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`, "…", `\&...`, "'", `\(aq`, "`", `\(ga`, "^", `\(ha`, "~", `\(ti`).
		Replace(text)
	if strings.HasPrefix(text, ".") {
		text = `\&` + text
	}
	return text
}

// quoteRoff is one argument of a macro.
func quoteRoff(text string) string { return `"` + strings.ReplaceAll(roff(text), `"`, `\(dq`) + `"` }
