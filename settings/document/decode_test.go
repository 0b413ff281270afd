package document

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/display"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/golden"
	"github.com/tailscale/hujson"
)

func TestDecode_ValidFilesHaveNoProblems(t *testing.T) {
	t.Parallel()
	for _, path := range fixtures(t, "testdata/valid/*.jsonc") {
		t.Run(filepath.Base(path), func(t *testing.T) {
			t.Parallel()
			block, problem := Decode(readFixture(t, path), "linux", Editor)
			if problem != nil {
				t.Fatal(problem)
			}
			if len(block.Problems) > 0 {
				t.Errorf("problems: %v", block.Problems)
			}
			got, err := json.MarshalIndent(setOnly(&block.Values), "", "  ")
			if err != nil {
				t.Fatal(err)
			}
			golden.Compare(t, *update, strings.TrimSuffix(path, ".jsonc")+".golden", string(got)+"\n")
		})
	}
}

func TestDecode_InvalidFilesSayWhereAndWhy(t *testing.T) {
	t.Parallel()
	for _, path := range fixtures(t, "testdata/invalid/*.jsonc") {
		t.Run(filepath.Base(path), func(t *testing.T) {
			t.Parallel()
			block, problem := Decode(readFixture(t, path), "linux", Editor)
			var out strings.Builder
			if problem != nil {
				fmt.Fprintf(&out, "unusable: %s\n", problem)
			} else {
				for _, p := range block.Problems {
					fmt.Fprintln(&out, p)
				}
				values, err := json.Marshal(setOnly(&block.Values))
				if err != nil {
					t.Fatal(err)
				}
				fmt.Fprintf(&out, "counts: %s\n", values)
			}
			golden.Compare(t, *update, strings.TrimSuffix(path, ".jsonc")+".golden", out.String())
		})
	}
}

func TestDecode_KeepsThePositionOfEveryKeyAndElement(t *testing.T) {
	t.Parallel()
	block, problem := Decode([]byte("{\"terminal\": {\"sandbox\": {\n  \"toolchains\": [\"a\",\n    \"é\", \"b\"]}}}"),
		"linux", Editor)
	if problem != nil {
		t.Fatal(problem)
	}
	want := Span{At: Position{2, 17}, Elements: []Position{{2, 18}, {3, 5}, {3, 11}}}
	if got := block.Spans["toolchains"]; !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestDecode_NestingIsBounded(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"4 million open brackets": strings.Repeat("[", 4_000_000),
		"4 million open braces":   strings.Repeat(`{"a":`, 800_000),
		"one level too many":      strings.Repeat("[", maxDepth+1) + strings.Repeat("]", maxDepth+1),
	} {
		_, problem := Decode([]byte(text), "linux", Editor)
		if problem == nil || !strings.Contains(problem.Message, "nested deeper") {
			t.Errorf("%s: got %v", name, problem)
		}
	}
	many := strings.Repeat("[", maxDepth+1)
	legal := `{"x": ` + many[2:] + strings.Repeat("]", maxDepth-1) + `, "y": "` + many + `", /* ` + many +
		` */ "z": "\"` + many + `"} // ` + many
	if _, problem := Decode([]byte(legal), "linux", Editor); problem != nil {
		t.Errorf("brackets in strings and comments do not nest: %v", problem)
	}
}

// The library gives the position of a syntax error only as text. If its wording
// changes, this fails.
func TestSyntaxError_ReadsThePositionOfTheLibrary(t *testing.T) {
	t.Parallel()
	_, err := hujson.Parse([]byte("{\n  \"a\": ?\n}"))
	at, cause := SyntaxError(err)
	if at != (Position{2, 8}) || strings.Contains(cause, "line") || !strings.Contains(cause, "?") {
		t.Errorf("got %v %q from %q", at, cause, err)
	}
	if at, cause = SyntaxError(errors.New("another wording")); at != (Position{1, 1}) || cause != "another wording" {
		t.Errorf("got %v %q", at, cause)
	}
	_, err = hujson.Parse([]byte(`{"a": ` + strings.Repeat("x", 1_000_000) + `}`))
	if _, cause = SyntaxError(err); len(cause) > 300 {
		t.Errorf("cause is %d bytes long", len(cause))
	}
}

func TestNearest(t *testing.T) {
	t.Parallel()
	known := []string{"enabled", "apply_to", "allow_network", "allowed_env_vars"}
	for word, want := range map[string]string{
		"enable": "enabled", "enalbed": "enabled", "allow_net": "", "allowNetwork": "allow_network", "allowed_env": "",
		"colour":   "",
		"apply-to": "apply_to", strings.Repeat("x", 1_000_000): "",
	} {
		if got := Nearest(word, known); got != want {
			t.Errorf("nearest to %s: %q, want %q", display.Quote(word), got, want)
		}
	}
}

func TestKeys_CoverEveryField(t *testing.T) {
	t.Parallel()
	var keys []string
	for _, l := range Keys() {
		keys = append(keys, l.Name)
	}
	for _, key := range []string{"enabled", "system_paths.read_write", "process_tracking"} {
		if !slices.Contains(keys, key) {
			t.Errorf("no leaf %s", key)
		}
	}
}

func FuzzDecode(f *testing.F) {
	for _, pattern := range []string{"testdata/valid/*.jsonc", "testdata/invalid/*.jsonc"} {
		for _, path := range fixtures(f, pattern) {
			f.Add(readFixture(f, path))
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		lines := strings.Count(string(data), "\n") + 1
		inside := func(at Position) bool {
			return at.Line >= 1 && at.Line <= lines+1 && at.Column >= 1 && at.Column <= len(data)+2
		}
		for _, whose := range []Owner{Editor, Sidecar} {
			block, problem := Decode(data, "linux", whose)
			if problem != nil {
				if !inside(Position{problem.Line, problem.Column}) || problem.Severity != SeverityError {
					t.Fatalf("problem outside of the file: %v", problem)
				}
				continue
			}
			for _, p := range block.Problems {
				if !inside(Position{p.Line, p.Column}) {
					t.Fatalf("problem outside of the file: %v", p)
				}
			}
			for _, l := range allKeys() {
				v, set := l.Get(&block.Values)
				where, placed := block.Spans[l.Name]
				if set != (placed && !where.Baseline) {
					t.Fatalf("%s: set %t, has a position %t", l.Name, set, placed)
				}
				if set && v.Kind() == reflect.Slice && v.Len() != len(where.Elements) {
					t.Fatalf("%s: %d entries, %d positions", l.Name, v.Len(), len(where.Elements))
				}
			}
		}
	})
}

func fixtures(t testing.TB, pattern string) []string {
	t.Helper()
	paths, err := filepath.Glob(pattern)
	if err != nil || len(paths) == 0 {
		t.Fatalf("no fixtures %s: %v", pattern, err)
	}
	return paths
}

func readFixture(t testing.TB, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// setOnly maps the keys that are set to their values.
func setOnly(s *Sandbox) map[string]any {
	set := map[string]any{}
	for _, l := range allKeys() {
		if v, ok := l.Get(s); ok {
			set[l.Name] = v.Interface()
		}
	}
	return set
}

var update = flag.Bool("update", false, "write the golden files anew")
