//go:build linux

package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// write writes the document, the plots next to it, and every sample for
// benchstat.
func (b *bench) write(dir, samples string, took time.Duration) error {
	plots := filepath.Join(dir, "performance")
	if err := os.MkdirAll(plots, 0o755); err != nil {
		return err
	}
	var document, stat bytes.Buffer
	b.head(&document, took)
	for _, s := range b.sections {
		s.markdown(&document)
		s.benchstat(&stat)
		var plot bytes.Buffer
		s.plot(&plot)
		if err := os.WriteFile(filepath.Join(plots, idOf(s)+".svg"), plot.Bytes(), 0o644); err != nil {
			return err
		}
	}
	document.WriteString(readNotes(filepath.Join(plots, "notes.md")))
	if err := os.WriteFile(filepath.Join(dir, "performance.md"), append(bytes.TrimRight(document.Bytes(), "\n"), '\n'),
		0o644); err != nil {
		return err
	}
	if _, err := os.Stdout.Write(document.Bytes()); err != nil {
		return err
	}
	return os.WriteFile(samples, stat.Bytes(), 0o644)
}

// readNotes is the hand-written text about the figures: why a target is missed,
// what the rest consists of.
func readNotes(path string) string {
	text, _ := os.ReadFile(path)
	return string(text)
}

func idOf(s section) string {
	switch s := s.(type) {
	case *table:
		return s.ID
	case *growth:
		return s.ID
	case *matrix:
		return s.ID
	}
	panic("BUG(sandbox-sidecar): a section without an id")
}

func (b *bench) head(w io.Writer, took time.Duration) {
	fmt.Fprint(w, `# Performance

Nobody should have to wait for the sandbox. These tables compare the sidecar with its alternatives, on one machine,
in one run in which all take turns. A figure means something only as a ratio within a table. Values are medians, p10
and p90 are the spread, and ratios are the median of the ratios of each round. "make bench" measures and writes all
of this again; "make bench QUICK=1" uses fewer rounds.

`)
	fmt.Fprintf(w, "- %s, %d processors, Linux %s, %s\n", processor(), runtime.NumCPU(), release(), runtime.Version())
	user := "an ordinary user"
	if os.Geteuid() == 0 {
		user = "root"
	}
	fmt.Fprintf(w, "- measured as %s on %s, in %d s, with a load of %s before the end\n", user,
		time.Now().UTC().Format("2006-01-02"), int(took.Seconds()), load())
	fmt.Fprintf(w, "- %s; %s\n", says(b.world.sidecar, "version"), strings.Join(b.peers.versions, "; "))
	for _, fact := range b.facts {
		fmt.Fprintf(w, "- %s\n", fact)
	}
	fmt.Fprint(w, "\n## Targets\n\n| | target | measured | |\n| --- | ---: | ---: | --- |\n")
	for _, t := range b.targets() {
		verdict := "reached"
		if !t.reached {
			verdict = "not reached"
		}
		fmt.Fprintf(w, "| %s | %s | %s | %s |\n", t.what, t.target, t.measured, verdict)
	}
	fmt.Fprintln(w)
}

func processor() string {
	data, _ := os.ReadFile("/proc/cpuinfo")
	for text := range strings.Lines(string(data)) {
		if name, value, found := strings.Cut(text, ":"); found && strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return runtime.GOARCH
}

func release() string {
	var name unix.Utsname
	if unix.Uname(&name) != nil {
		return "of unknown version"
	}
	return unix.ByteSliceToString(name.Release[:])
}

func load() string {
	data, _ := os.ReadFile("/proc/loadavg")
	first, _, _ := strings.Cut(string(data), " ")
	return first
}
