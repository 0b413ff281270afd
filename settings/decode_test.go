package settings

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/tailscale/hujson"
)

func TestDecode_ValidFilesHaveNoProblems(t *testing.T) {
	t.Parallel()
	for _, path := range fixtures(t, "testdata/valid/*.jsonc") {
		t.Run(filepath.Base(path), func(t *testing.T) {
			t.Parallel()
			document, problem := decode(readFixture(t, path), "linux", others)
			if problem != nil {
				t.Fatal(problem)
			}
			if len(document.problems) > 0 {
				t.Errorf("problems: %v", document.problems)
			}
			got, err := json.MarshalIndent(setOnly(&document.values), "", "  ")
			if err != nil {
				t.Fatal(err)
			}
			golden(t, strings.TrimPrefix(strings.TrimSuffix(path, ".jsonc"), "testdata/")+".golden", string(got)+"\n")
		})
	}
}

func TestDecode_InvalidFilesSayWhereAndWhy(t *testing.T) {
	t.Parallel()
	for _, path := range fixtures(t, "testdata/invalid/*.jsonc") {
		t.Run(filepath.Base(path), func(t *testing.T) {
			t.Parallel()
			document, problem := decode(readFixture(t, path), "linux", others)
			var out strings.Builder
			if problem != nil {
				fmt.Fprintf(&out, "unusable: %s\n", problem)
			} else {
				for _, p := range document.problems {
					fmt.Fprintln(&out, p)
				}
				values, err := json.Marshal(setOnly(&document.values))
				if err != nil {
					t.Fatal(err)
				}
				fmt.Fprintf(&out, "counts: %s\n", values)
			}
			golden(t, strings.TrimPrefix(strings.TrimSuffix(path, ".jsonc"), "testdata/")+".golden", out.String())
		})
	}
}

func TestDecode_KeepsThePositionOfEveryKeyAndElement(t *testing.T) {
	t.Parallel()
	document, problem := decode([]byte("{\"terminal\": {\"sandbox\": {\n  \"toolchains\": [\"a\",\n    \"é\", \"b\"]}}}"),
		"linux", others)
	if problem != nil {
		t.Fatal(problem)
	}
	want := span{at: position{2, 17}, elements: []position{{2, 18}, {3, 5}, {3, 11}}}
	if got := document.where["toolchains"]; !reflect.DeepEqual(got, want) {
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
		_, problem := decode([]byte(text), "linux", others)
		if problem == nil || !strings.Contains(problem.Message, "nested deeper") {
			t.Errorf("%s: got %v", name, problem)
		}
	}
	many := strings.Repeat("[", maxDepth+1)
	legal := `{"x": ` + many[2:] + strings.Repeat("]", maxDepth-1) + `, "y": "` + many + `", /* ` + many +
		` */ "z": "\"` + many + `"} // ` + many
	if _, problem := decode([]byte(legal), "linux", others); problem != nil {
		t.Errorf("brackets in strings and comments do not nest: %v", problem)
	}
}

// The library gives the position of a syntax error only as text. Should its
// wording change, this fails.
func TestSyntaxError_ReadsThePositionOfTheLibrary(t *testing.T) {
	t.Parallel()
	_, err := hujson.Parse([]byte("{\n  \"a\": ?\n}"))
	at, cause := syntaxError(err)
	if at != (position{2, 8}) || strings.Contains(cause, "line") || !strings.Contains(cause, "?") {
		t.Errorf("got %v %q from %q", at, cause, err)
	}
	if at, cause = syntaxError(errors.New("another wording")); at != (position{1, 1}) || cause != "another wording" {
		t.Errorf("got %v %q", at, cause)
	}
	_, err = hujson.Parse([]byte(`{"a": ` + strings.Repeat("x", 1_000_000) + `}`))
	if _, cause = syntaxError(err); len(cause) > 300 {
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
		if got := nearest(word, known); got != want {
			t.Errorf("nearest to %s: %q, want %q", quote(word), got, want)
		}
	}
}

func TestLeaves_CoverEveryKeyAndHaveAnOrigin(t *testing.T) {
	t.Parallel()
	var keys []string
	for _, l := range leaves {
		keys = append(keys, l.key)
	}
	for _, key := range []string{"enabled", "system_paths.read_write", "process_tracking"} {
		if !slices.Contains(keys, key) {
			t.Errorf("no leaf %s", key)
		}
	}
	origins := snapshotOf(t, tree(t, nil), `{"enabled": true}`, "").Origins()
	if len(origins) != len(leaves) || origins["enabled"] != userFile || origins["apply_to"] != "built-in defaults" {
		t.Errorf("origins: %v", origins)
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
		inside := func(at position) bool {
			return at.line >= 1 && at.line <= lines+1 && at.column >= 1 && at.column <= len(data)+2
		}
		for _, whose := range []audience{others, ours} {
			document, problem := decode(data, "linux", whose)
			if problem != nil {
				if !inside(position{problem.Line, problem.Column}) || problem.Severity != SeverityError {
					t.Fatalf("problem outside of the file: %v", problem)
				}
				continue
			}
			for _, p := range document.problems {
				if !inside(position{p.Line, p.Column}) {
					t.Fatalf("problem outside of the file: %v", p)
				}
			}
			for _, l := range leaves {
				v, set := l.get(&document.values)
				where, placed := document.where[l.key]
				if set != placed {
					t.Fatalf("%s: set %t, has a position %t", l.key, set, placed)
				}
				if set && v.Kind() == reflect.Slice && v.Len() != len(where.elements) {
					t.Fatalf("%s: %d entries, %d positions", l.key, v.Len(), len(where.elements))
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
	for _, l := range leaves {
		if v, ok := l.get(s); ok {
			set[l.key] = v.Interface()
		}
	}
	return set
}
