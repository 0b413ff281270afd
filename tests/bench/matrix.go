//go:build linux

package main

import (
	"fmt"
	"io"
	"strings"
)

// matrix compares several figures at once: a row for each sandbox, a column for
// each thing measured.
type matrix struct {
	ID, Title, How string
	Baseline       string
	Columns        []string
	rows           []matrixRow
}

type matrixRow struct {
	name    string
	values  map[string]float64
	ratios  map[string]float64
	samples map[string][]float64
}

// add adds a row of single figures.
func (m *matrix) add(name string, value func(column string) float64) {
	m.addSamples(name, func(column string) []float64 { return []float64{value(column)} })
}

// addSamples adds a row. Its ratios are to the row of the baseline.
func (m *matrix) addSamples(name string, samples func(column string) []float64) {
	r := matrixRow{name, map[string]float64{}, map[string]float64{}, map[string][]float64{}}
	for _, column := range m.Columns {
		r.samples[column] = samples(column)
		r.values[column] = median(r.samples[column])
	}
	m.rows = append(m.rows, r)
	for _, base := range m.rows {
		if base.name != m.Baseline {
			continue
		}
		for _, column := range m.Columns {
			for i := range m.rows {
				m.rows[i].ratios[column] = ratio(m.rows[i].samples[column], base.samples[column])
			}
		}
	}
}

// ratioOf is the ratio of a row in a column; 0 if it is not known.
func (m *matrix) ratioOf(name, column string) float64 {
	for _, r := range m.rows {
		if r.name == name {
			return r.ratios[column]
		}
	}
	return 0
}

func (m *matrix) markdown(w io.Writer) {
	fmt.Fprintf(w, "## %s\n\n%s\n\n![%s](performance/%s.svg)\n\n| | %s |\n| --- |%s\n", m.Title, m.How, m.Title, m.ID,
		strings.Join(m.Columns, " | "), strings.Repeat(" ---: |", len(m.Columns)))
	for _, r := range m.rows {
		fmt.Fprintf(w, "| %s |", r.name)
		for _, column := range m.Columns {
			switch {
			case r.values[column] == 0:
				fmt.Fprint(w, " – |")
			case r.name == m.Baseline:
				fmt.Fprintf(w, " %s |", figure(r.values[column]))
			default:
				fmt.Fprintf(w, " %s (× %s) |", figure(r.values[column]), figure(r.ratios[column]))
			}
		}
		fmt.Fprintln(w)
	}
	fmt.Fprintln(w)
}

// plot draws the ratios as a table of bars: one group for each column.
func (m *matrix) plot(w io.Writer) {
	t := &table{ID: m.ID, Title: m.Title + ": × " + m.Baseline, Unit: "×"}
	for _, column := range m.Columns {
		for _, r := range m.rows {
			if r.ratios[column] > 0 && r.name != m.Baseline {
				t.Rows = append(t.Rows, row{Name: r.name + ": " + column, Samples: []float64{r.ratios[column]}})
			}
		}
	}
	t.plot(w)
}

func (m *matrix) benchstat(w io.Writer) {
	for _, r := range m.rows {
		for _, column := range m.Columns {
			for _, sample := range r.samples[column] {
				fmt.Fprintf(w, "Benchmark%s/%s/%s 1 %g units\n", title(m.ID), strings.ReplaceAll(column, " ", "_"),
					strings.ReplaceAll(r.name, " ", "_"), sample)
			}
		}
	}
}
