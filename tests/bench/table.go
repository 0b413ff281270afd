//go:build linux

package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

// table is one comparison. All rows have the same unit and, except Absent ones,
// a sample for each round that they took part in.
type table struct {
	ID, Title, Unit string
	// How describes the measurement in a sentence or two.
	How string
	// Baseline is the name of the row that the others are compared with.
	Baseline string
	// Close is true if the rows differ so little that the ratios need their
	// confidence intervals.
	Close bool
	// MoreIsBetter is true for speeds.
	MoreIsBetter bool
	Rows         []row
}

type row struct {
	Name    string
	Samples []float64
	// CPU is the mean processor time of one sample in ms, children included; 0
	// if it is not known.
	CPU float64
	// Note is added to the name.
	Note string
	// Absent says why there are no samples.
	Absent string
}

func (t *table) baseline() []float64 {
	for _, r := range t.Rows {
		if r.Name == t.Baseline {
			return r.Samples
		}
	}
	return nil
}

// find returns the row of this name.
func (t *table) find(name string) (row, bool) {
	i := slices.IndexFunc(t.Rows, func(r row) bool { return r.Name == name })
	if i < 0 {
		return row{}, false
	}
	return t.Rows[i], t.Rows[i].Absent == ""
}

// markdown writes the table, the best row first.
func (t *table) markdown(w io.Writer) {
	fmt.Fprintf(w, "## %s\n\n%s\n\n![%s](performance/%s.svg)\n\n", t.Title, t.How, t.Title, t.ID)
	withCPU := slices.ContainsFunc(t.Rows, func(r row) bool { return r.CPU > 0 })
	head, line := []string{"", t.Unit, "p10", "p90"}, []string{"---", "---:", "---:", "---:"}
	if withCPU {
		head, line = append(head, "CPU, ms"), append(line, "---:")
	}
	if t.Baseline != "" {
		name := "× " + t.Baseline
		if t.Close {
			name += " (95 %)"
		}
		head, line = append(head, name), append(line, "---:")
	}
	fmt.Fprintf(w, "| %s |\n| %s |\n", strings.Join(head, " | "), strings.Join(line, " | "))
	base := t.baseline()
	for _, r := range t.sorted() {
		name := r.Name
		if r.Note != "" {
			name += " (" + r.Note + ")"
		}
		if r.Absent != "" {
			fmt.Fprintf(w, "| %s | absent: %s |%s\n", name, r.Absent, strings.Repeat(" |", len(head)-2))
			continue
		}
		cells := []string{
			name, figure(median(r.Samples)), figure(quantile(r.Samples, 0.1)), figure(quantile(r.Samples, 0.9)),
		}
		if withCPU {
			cell := ""
			if r.CPU > 0 {
				cell = figure(r.CPU)
			}
			cells = append(cells, cell)
		}
		if t.Baseline != "" {
			cells = append(cells, t.ratio(r.Samples, base))
		}
		fmt.Fprintf(w, "| %s |\n", strings.Join(cells, " | "))
	}
	fmt.Fprintln(w)
}

func (t *table) ratio(samples, base []float64) string {
	if !t.Close {
		return figure(ratio(samples, base))
	}
	low, high := interval(ratios(samples, base))
	return fmt.Sprintf("%.3f (%.3f–%.3f)", ratio(samples, base), low, high)
}

func (t *table) sorted() []row {
	rows := slices.Clone(t.Rows)
	slices.SortStableFunc(rows, func(a, b row) int {
		if (a.Absent == "") != (b.Absent == "") {
			return cmp.Compare(len(a.Absent), len(b.Absent))
		}
		order := cmp.Compare(median(a.Samples), median(b.Samples))
		if t.MoreIsBetter {
			order = -order
		}
		return order
	})
	return rows
}

// benchstat writes every sample as "go test -bench" would.
func (t *table) benchstat(w io.Writer) {
	for _, r := range t.Rows {
		for _, sample := range r.Samples {
			fmt.Fprintf(w, "Benchmark%s/%s 1 %s %s\n", title(t.ID), strings.ReplaceAll(r.Name, " ", "_"),
				strconv.FormatFloat(sample, 'g', -1, 64),
				strings.ReplaceAll(t.Unit, " ", "_"))
		}
	}
}

// title makes an id a part of a benchmark's name.
func title(id string) string { return strings.ToUpper(id[:1]) + id[1:] }

// figure rounds to three digits or so.
func figure(v float64) string {
	switch {
	case v >= 100 || v == 0:
		return strconv.FormatFloat(v, 'f', 0, 64)
	case v >= 10:
		return strconv.FormatFloat(v, 'f', 1, 64)
	}
	return strconv.FormatFloat(v, 'f', 2, 64)
}
