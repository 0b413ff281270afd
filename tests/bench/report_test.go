//go:build linux

package main

import (
	"bufio"
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"math"
	"os"
	"strings"
	"testing"
)

func TestRatio_ComparesRoundByRound(t *testing.T) {
	t.Parallel()
	// The machine was three times as slow in the second round. The ratio of the
	// medians would be 3.
	if got := ratio([]float64{2, 6, 2}, []float64{1, 3, 1}); got != 2 {
		t.Errorf("ratio %g, want 2", got)
	}
	if got := ratio([]float64{2}, nil); got != 0 {
		t.Errorf("without a baseline: %g", got)
	}
	if got := quantile([]float64{5, 1, 3, 2, 4}, 0.1); got != 1 {
		t.Errorf("p10 is %g", got)
	}
}

func TestInterval_HoldsTheMedian(t *testing.T) {
	t.Parallel()
	var samples []float64
	for i := range 101 {
		samples = append(samples, float64(i))
	}
	// Of 101 samples, the ranks 40 and 61.
	if low, high := interval(samples); low != 40 || high != 61 {
		t.Errorf("of 0 to 100: %g to %g", low, high)
	}
	alike := sample()
	alike.Close = true
	var out strings.Builder
	alike.markdown(&out)
	for _, want := range []string{"| × bare PTY (95 %) |", "| 2.50 | 2.500 (2.000–3.000) |"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("lacks %q:\n%s", want, out.String())
		}
	}
}

// What is written by hand lies in a file of its own, or the next run would take
// it away.
func TestNotes_AreInTheDocument(t *testing.T) {
	t.Parallel()
	var texts [2]string
	for i, name := range []string{"../../docs/performance.md", "../../docs/performance/notes.md"} {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		texts[i] = strings.TrimSpace(string(text))
	}
	if texts[1] == "" || !strings.HasSuffix(texts[0], texts[1]) {
		t.Error("docs/performance.md does not end with docs/performance/notes.md")
	}
}

func sample() *table {
	return &table{
		ID: "spawn", Title: "Spawn & more", Unit: "ms", Baseline: rowBare, How: "How.",
		Rows: []row{
			{Name: rowCodex, Absent: "not installed"},
			{Name: rowBoxed, Samples: []float64{4, 6, 5}, CPU: 2.5},
			{Name: rowPlain, Samples: []float64{4, 4, 4}},
			{Name: rowBare, Samples: []float64{2, 2, 2}},
		},
	}
}

func TestTable_Markdown(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	sample().markdown(&out)
	for _, want := range []string{
		"|  | ms | p10 | p90 | CPU, ms | × bare PTY |\n",
		"| bare PTY | 2.00 | 2.00 | 2.00 |  | 1.00 |\n| sidecar, unsandboxed | 4.00 | 4.00 | 4.00 |  | 2.00 |\n| " +
			"sidecar, sandboxed | 5.00 | 4.00 | 6.00 | 2.50 | 2.50 |\n",
		"| codex app-server | absent: not installed | | | | |\n",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("lacks %q:\n%s", want, out.String())
		}
	}
}

func TestPlots_AreXML(t *testing.T) {
	t.Parallel()
	m := &matrix{ID: "calls", Title: "Calls", Baseline: rowNone, Columns: []string{"open"}}
	m.add(rowNone, func(string) float64 { return 2 })
	m.add(rowBoxed, func(string) float64 { return 3 })
	if got := m.ratioOf(rowBoxed, "open"); got != 1.5 {
		t.Errorf("ratio of the matrix is %g", got)
	}
	g := &growth{
		ID: "close", Title: "Close", X: "processes", Y: "ms",
		Lines: []line{{Name: "a < b", Points: []point{{1, 1}, {10, 5}, {100, 50}}}},
	}
	if got := g.Lines[0].exponent(); math.Abs(got-1) > 1e-9 {
		t.Errorf("exponent %g, want 1", got)
	}
	for _, s := range []section{sample(), m, g} {
		var plot, stat bytes.Buffer
		s.plot(&plot)
		decoder, elements := xml.NewDecoder(&plot), 0
		for {
			token, err := decoder.Token()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatalf("%s: %v", idOf(s), err)
			}
			if _, starts := token.(xml.StartElement); starts {
				elements++
			}
		}
		if elements < 5 {
			t.Errorf("%s: only %d elements", idOf(s), elements)
		}
		s.benchstat(&stat)
		for text := range strings.Lines(stat.String()) {
			if fields := strings.Fields(text); len(fields) != 4 || !strings.HasPrefix(fields[0], "Benchmark") ||
				fields[1] != "1" {
				t.Errorf("%s: not benchstat's format: %q", idOf(s), text)
			}
		}
	}
}

func TestTargets_JudgeBothWays(t *testing.T) {
	t.Parallel()
	b := &bench{sections: []section{sample()}, idle: map[string]float64{}}
	got := b.targets()
	if len(got) != 1 || !got[0].reached || got[0].measured != "1.25 ×" {
		t.Errorf("4, 6 and 5 over 4 each: %+v", got)
	}
	slower := sample()
	slower.Rows[1].Samples = []float64{6, 6, 6}
	b.sections = []section{slower}
	if got := b.targets(); len(got) != 1 || got[0].reached {
		t.Errorf("6 over 4: %+v", got)
	}
}

func TestSidecar_CountsOutputWithoutDecoding(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int{"eA==": 1, "eHg=": 2, "eHh4": 3, "": 0} {
		body := string(outputHead) + strings.Repeat("0", idLength) + `","data":"` + text + `"}}`
		if got := outputLength([]byte(body)); got != want {
			t.Errorf("%q: %d bytes, want %d", text, got, want)
		}
	}
	length, err := readHeader(bufio.NewReader(strings.NewReader("X: y\r\nContent-Length: 12\r\n\r\n")))
	if length != 12 || err != nil {
		t.Errorf("length %d, %v", length, err)
	}
	if got := member([]byte(`{"id":"a","data":"xy"}`), "data"); string(got) != "xy" {
		t.Errorf("member is %q", got)
	}
}
