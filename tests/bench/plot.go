//go:build linux

package main

import (
	"fmt"
	"html"
	"io"
	"math"
)

// The plots are SVG, written by hand: bars and lines need no library, and a
// diff of the text shows what has changed.

const (
	plotWidth = 820
	barHeight = 20
	barGap    = 6
	nameWidth = 260
	ownColour = "#2f6f4f"
	colour    = "#8a94a6"
	inkColour = "#444c56"
)

// plot draws a bar for each row, on a logarithmic scale if the largest is far
// from the smallest. A thin line spans p10 to p90.
func (t *table) plot(w io.Writer) {
	var rows []row
	least, most := math.Inf(1), 0.0
	for _, r := range t.sorted() {
		if len(r.Samples) == 0 || median(r.Samples) <= 0 {
			continue
		}
		rows = append(rows, r)
		least, most = min(least, median(r.Samples)), max(most, quantile(r.Samples, 0.9))
	}
	logarithmic := most > 20*least
	scale := func(v float64) float64 {
		width := float64(plotWidth - nameWidth - 90)
		if !logarithmic {
			return v / most * width
		}
		return math.Log(max(v, least/2)/(least/2)) / math.Log(most/(least/2)) * width
	}
	height := len(rows)*(barHeight+barGap) + 50
	begin(w, height, t.Title)
	for i, r := range rows {
		y, fill := 30+i*(barHeight+barGap), colour
		if ours(r.Name) {
			fill = ownColour
		}
		fmt.Fprintf(w, `<text x="%d" y="%d" text-anchor="end">%s</text>`+"\n", nameWidth-8, y+15,
			html.EscapeString(r.Name))
		fmt.Fprintf(w, `<rect x="%d" y="%d" width="%.1f" height="%d" fill="%s"/>`+"\n", nameWidth, y,
			scale(median(r.Samples)), barHeight, fill)
		low, high := scale(quantile(r.Samples, 0.1)), scale(quantile(r.Samples, 0.9))
		fmt.Fprintf(w, `<line x1="%.1f" x2="%.1f" y1="%d" y2="%d" stroke="%s"/>`+"\n", nameWidth+low, nameWidth+high,
			y+barHeight/2, y+barHeight/2, inkColour)
		fmt.Fprintf(w, `<text x="%.1f" y="%d">%s</text>`+"\n", nameWidth+max(high, scale(median(r.Samples)))+6, y+15,
			figure(median(r.Samples)))
	}
	axis := t.Unit
	if logarithmic {
		axis += ", logarithmic"
	}
	fmt.Fprintf(w, `<text x="%d" y="%d" fill="%s">%s</text>`+"\n</svg>\n", nameWidth, height-8, inkColour,
		html.EscapeString(axis))
}

// ours reports whether a row is the sidecar's.
func ours(name string) bool { return len(name) >= 7 && name[:7] == "sidecar" }

func begin(w io.Writer, height int, name string) {
	fmt.Fprintf(w, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" `+
		`font-family="sans-serif" font-size="13">`+"\n",
		plotWidth, height, plotWidth, height)
	fmt.Fprintf(w, `<rect width="100%%" height="100%%" fill="#ffffff"/>`+"\n"+
		`<text x="10" y="18" font-weight="bold">%s</text>`+"\n", html.EscapeString(name))
}

// lineColours distinguish the lines of one plot.
var lineColours = []string{ownColour, "#b35900", "#4457a5", colour}

// plot draws the lines on logarithmic axes. Linear growth rises by 45°, as the
// dashed line does.
func (g *growth) plot(w io.Writer) {
	const left, top, width, height = 80, 40, 560, 300
	minX, maxX, minY, maxY := math.Inf(1), 0.0, math.Inf(1), 0.0
	for _, l := range g.Lines {
		for _, p := range l.Points {
			minX, maxX, minY, maxY = min(minX, p.X), max(maxX, p.X), min(minY, p.Y), max(maxY, p.Y)
		}
	}
	minY = max(minY, 1e-6)
	// One decade is as long on both axes.
	decades := max(math.Log10(maxX/minX), math.Log10(maxY/minY), 1)
	x := func(v float64) float64 { return left + math.Log10(v/minX)/decades*height }
	y := func(v float64) float64 { return top + height - math.Log10(max(v, minY)/minY)/decades*height }
	begin(w, top+height+50, g.Title)
	fmt.Fprintf(w, `<line x1="%d" y1="%d" x2="%d" y2="%d" stroke="%s"/>`+"\n", left, top+height, left+width, top+height,
		inkColour)
	fmt.Fprintf(w, `<line x1="%d" y1="%d" x2="%d" y2="%d" stroke="%s"/>`+"\n", left, top, left, top+height, inkColour)
	fmt.Fprintf(w, `<line x1="%d" y1="%d" x2="%d" y2="%d" stroke="#c9ced6" stroke-dasharray="4 4"/>`+"\n", left,
		top+height, left+height, top)
	for i, l := range g.Lines {
		stroke := lineColours[i%len(lineColours)]
		path := ""
		for _, p := range l.Points {
			path += fmt.Sprintf("%.1f,%.1f ", x(p.X), y(p.Y))
			fmt.Fprintf(w, `<circle cx="%.1f" cy="%.1f" r="3" fill="%s"/>`+"\n", x(p.X), y(p.Y), stroke)
			fmt.Fprintf(w, `<text x="%.1f" y="%.1f" fill="%s" font-size="11">%s</text>`+"\n", x(p.X)+5,
				y(p.Y)-5, stroke, figure(p.Y))
			if i == 0 {
				fmt.Fprintf(w, `<text x="%.1f" y="%d" text-anchor="middle" font-size="11">%.0f</text>`+"\n", x(p.X),
					top+height+16, p.X)
			}
		}
		fmt.Fprintf(w, `<polyline points="%s" fill="none" stroke="%s" stroke-width="2"/>`+"\n", path, stroke)
		fmt.Fprintf(w, `<text x="%d" y="%d" fill="%s">%s</text>`+"\n", left+width-190, top+16+i*18, stroke,
			html.EscapeString(l.Name))
	}
	fmt.Fprintf(w, `<text x="%d" y="%d">%s</text>`+"\n", left, top+height+38,
		html.EscapeString(g.X+" (across), "+g.Y+" (up), both logarithmic; dashed: linear"))
	fmt.Fprint(w, "</svg>\n")
}
