//go:build unix

package audit

import (
	"bytes"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/sandbox-sidecar/sandbox-sidecar/display"
)

// TestSchema_DescribesEveryField holds the schema and the type to each other,
// and a full line to the schema.
func TestSchema_DescribesEveryField(t *testing.T) {
	t.Parallel()
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(Schema()))
	if err != nil {
		t.Fatal(err)
	}
	properties := document.(map[string]any)["properties"].(map[string]any)
	var names []string
	for field := range reflect.TypeFor[Event]().Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		names = append(names, name)
		if properties[name] == nil {
			t.Errorf("the schema has no %s", name)
		}
	}
	if len(names) != len(properties) {
		t.Errorf("the schema has %d fields, a line has %d", len(properties), len(names))
	}
	compiler := jsonschema.NewCompiler()
	if err := compiler.AddResource("schema.json", document); err != nil {
		t.Fatal(err)
	}
	compiled, err := compiler.Compile("schema.json")
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now().UTC()
	line, err := encode(Event{
		Version: Version, Time: now, Event: Spawn, Lost: 2, Kind: "tool",
		Argv:       []string{"a\x1b[31m\u202e\u0085", "--token=x"},
		Restricted: new(bool), Protections: map[string]string{"network": "enforced"}, First: &now, Last: &now, Count: 1,
		Answer: "deny", Changed: []Change{{Path: "/x", How: "created"}}, ExitCode: new(int),
	})
	if err != nil {
		t.Fatal(err)
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(line))
	if err == nil {
		err = compiled.Validate(value)
	}
	if err != nil {
		t.Errorf("%s: %v", line, err)
	}
	if bytes.ContainsAny(line, "\x1b\u202e\u0085") {
		t.Errorf("control characters are not escaped: %q", line)
	}
}

func TestEncode_IsBounded(t *testing.T) {
	t.Parallel()
	for _, argv := range [][]string{
		{strings.Repeat("x", 1<<20)},
		slices.Repeat([]string{"word"}, 1<<18),
		{strings.Repeat("\x01", 1<<16), strings.Repeat("\x02", 1<<16)},
	} {
		given := slices.Clone(argv)
		line, err := encode(Event{
			Event: Spawn, Argv: argv, Target: strings.Repeat("ü", 1<<16), Error: strings.Repeat("\x00", 1<<16),
		})
		if err != nil || len(line) > maxLine || !json.Valid(line) {
			t.Errorf("%d bytes: %v", len(line), err)
		}
		if !slices.Equal(argv, given) {
			t.Error("the caller's arguments were changed")
		}
	}
}

// A text that is too long loses its middle, and differs still from others.
func TestShorten_CutsTheMiddle(t *testing.T) {
	t.Parallel()
	seen := map[string]string{}
	for _, unit := range []string{"x", "\x01", "ü", "\u202e", "\U0001f600", "\xff", `"`, "<"} {
		for _, middle := range []string{"a", "b"} {
			text := "/begin/" + strings.Repeat(unit, 2000) + middle + strings.Repeat(unit, 2000) + "/end"
			short := Shorten(text, MaxTarget)
			encoded, err := json.Marshal(short)
			if err != nil {
				t.Fatal(err)
			}
			if size := len(display.JSON(encoded)) - len(`""`); size > MaxTarget || size > Size(short) {
				t.Errorf("%q takes %d bytes, and counts as %d", short, size, Size(short))
			}
			if !strings.HasPrefix(short, "/begin/") || !strings.HasSuffix(short, "/end") || seen[short] != "" {
				t.Errorf("%q", short)
			}
			seen[short] = text
			if again := Shorten(short, MaxTarget); again != short {
				t.Errorf("%q is cut again: %q", short, again)
			}
		}
	}
	if text := strings.Repeat("x", MaxTarget); Shorten(text, MaxTarget) != text {
		t.Error("what fits is cut")
	}
}
