//go:build linux

package main

import (
	"fmt"
	"io"
	"math"
	"strings"
)

// growth is how a cost grows with the number of something.
type growth struct {
	ID, Title, How string
	// X and Y are the units of the axes.
	X, Y  string
	Lines []line
}

type line struct {
	Name   string
	Points []point // by ascending X
}

type point struct{ X, Y float64 }

// exponent is the power of X with which the cost beyond the first point grows:
// 1 is linear. It is taken from the last two points, because constant costs
// hide it in the first ones.
func (l line) exponent() float64 {
	if len(l.Points) < 2 {
		return 0
	}
	before, last := l.Points[len(l.Points)-2], l.Points[len(l.Points)-1]
	if before.Y <= 0 || last.Y <= 0 || before.X <= 0 {
		return 0
	}
	return math.Log(last.Y/before.Y) / math.Log(last.X/before.X)
}

func (g *growth) markdown(w io.Writer) {
	fmt.Fprintf(w, "## %s\n\n%s\n\n![%s](performance/%s.svg)\n\n| %s |", g.Title, g.How, g.Title, g.ID, g.X)
	for _, l := range g.Lines {
		fmt.Fprintf(w, " %s, %s |", l.Name, g.Y)
	}
	fmt.Fprintf(w, "\n| ---: |%s\n", strings.Repeat(" ---: |", len(g.Lines)))
	for i, p := range g.Lines[0].Points {
		fmt.Fprintf(w, "| %.0f |", p.X)
		for _, l := range g.Lines {
			if i < len(l.Points) {
				fmt.Fprintf(w, " %s |", figure(l.Points[i].Y))
			} else {
				fmt.Fprint(w, " |")
			}
		}
		fmt.Fprintln(w)
	}
	fmt.Fprint(w, "| grows with the power |")
	for _, l := range g.Lines {
		fmt.Fprintf(w, " %s |", figure(max(0, l.exponent())))
	}
	fmt.Fprint(w, "\n\n")
}

func (g *growth) benchstat(w io.Writer) {
	for _, l := range g.Lines {
		for _, p := range l.Points {
			fmt.Fprintf(w, "Benchmark%s/%s/%.0f 1 %g %s\n", title(g.ID), strings.ReplaceAll(l.Name, " ", "_"), p.X, p.Y,
				strings.ReplaceAll(g.Y, " ", "_"))
		}
	}
}
