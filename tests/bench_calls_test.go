//go:build linux

package tests

import (
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// BenchmarkCalls measures what a sandbox adds to ordinary system calls: the
// time in a session with a sandbox over that in one without. The two take
// turns, and each figure is the minimum.
func BenchmarkCalls(b *testing.B) {
	for _, variant := range []struct {
		name     string
		settings string
		machine  func(testing.TB) harness.Options
	}{
		{"sandboxed", harness.Defaults(nil), func(testing.TB) harness.Options { return harness.Options{} }},
		{"offline", harness.Defaults(harness.Sandbox{"allow_network": false}), func(testing.TB) harness.Options {
			return harness.Options{}
		}},
		{"without namespaces", harness.Defaults(nil), func(t testing.TB) harness.Options {
			return harness.Options{Wrap: harness.WithoutNamespaces(t)}
		}},
	} {
		b.Run(variant.name, func(b *testing.B) {
			plain := newStopwatch(b, harness.Options{Settings: harness.Off()})
			options := variant.machine(b)
			options.Settings = variant.settings
			sandboxed := newStopwatch(b, options)
			for b.Loop() {
				plain.measure(b)
				sandboxed.measure(b)
			}
			for _, name := range plain.names {
				b.ReportMetric(sandboxed.least[name]/plain.least[name], "×"+name)
			}
			b.ReportMetric(0, "ns/op") // meaningless here
		})
	}
}

// stopwatch is an editor with the program that measures.
type stopwatch struct {
	*harness.Editor
	program string
	names   []string
	least   map[string]float64 // in ns
}

func newStopwatch(b *testing.B, options harness.Options) *stopwatch {
	b.Helper()
	w := harness.NewWorld(b)
	s := &stopwatch{program: filepath.Join(w.Project, "stopwatch"), least: map[string]float64{}}
	harness.Victim(b, "tests/stopwatch", s.program)
	s.Editor = harness.Start(b, w, options)
	return s
}

func (s *stopwatch) measure(b *testing.B) {
	b.Helper()
	dir := b.TempDir()
	session := s.Spawn(protocol.SpawnParams{Kind: protocol.Tool, Command: s.program, Args: []string{dir}})
	if exit := session.Exit(); exit.ExitCode == nil || *exit.ExitCode != 0 {
		b.Fatalf("stopwatch: %+v\n%s", exit, session.Output())
	}
	for line := range strings.Lines(session.Output()) {
		name, text, _ := strings.Cut(strings.TrimSpace(line), " ")
		took, err := strconv.ParseFloat(text, 64)
		if err != nil {
			b.Fatal(err)
		}
		if !slices.Contains(s.names, name) {
			s.names, s.least[name] = append(s.names, name), took
		}
		s.least[name] = min(s.least[name], took)
	}
}
