package settings

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/tailscale/hujson"

	"github.com/sandbox-sidecar/sandbox-sidecar/settings/document"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/resolve/resolvetest"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/settingstest"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/toolchain"
)

func compileSchema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	block, err := jsonschema.UnmarshalJSON(bytes.NewReader(Schema()))
	must(t, err)
	compiler := jsonschema.NewCompiler()
	must(t, compiler.AddResource("settings.json", block))
	schema, err := compiler.Compile("settings.json")
	must(t, err)
	return schema
}

// valid checks a settings file against the schema.
func valid(t *testing.T, schema *jsonschema.Schema, text string) error {
	t.Helper()
	standard, err := hujson.Standardize([]byte(text))
	must(t, err)
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(standard))
	must(t, err)
	return schema.Validate(value)
}

// Users believe a language server, so it and the program must agree on keys and
// types.
func TestSchema_FindsTheMistakesThatDecodingFinds(t *testing.T) {
	t.Parallel()
	schema := compileSchema(t)
	for block, good := range map[string]bool{
		`{}`:                    true,
		`null`:                  true,
		`{"enabled": true}`:     true,
		`{"enabled": null}`:     true,
		`{"enabled": "yes"}`:    false,
		`{"enabled": 1}`:        false,
		`{"apply_to": "tool"}`:  true,
		`{"apply_to": "tools"}`: false,
		`{"apply_to": null}`:    true,
		`{"aply_to": "tool"}`:   false,
		`[]`:                    false,
		`{"system_paths": {"executable": ["/usr/bin"], "read_only": null}}`:    true,
		`{"system_paths": {"exe": []}}`:                                        false,
		`{"system_paths": []}`:                                                 false,
		`{"additional_read_only_paths": ["~/x", "$HOME/y", "/z", "rel"]}`:      true,
		`{"additional_read_only_paths": "~/x"}`:                                false,
		`{"additional_read_only_paths": [1]}`:                                  false,
		`{"allowed_env_vars": ["PATH", "LC_*"]}`:                               true,
		`{"allowed_env_vars": ["+PATH", "+LC_*"]}`:                             true,
		`{"allow_network": false}`:                                             true,
		`{"toolchains": ["go", "rust", "nix"]}`:                                true,
		`{"protected_paths": []}`:                                              true,
		`{"on_unavailable": "warn"}`:                                           true,
		`{"on_unavailable": "ignore"}`:                                         false,
		`{"on_denied": "ask"}`:                                                 true,
		`{"process_tracking": "seatbelt"}`:                                     true,
		`{"process_tracking": 3}`:                                              false,
		`{"tool": {"allow_network": false}, "terminal": null}`:                 true,
		`{"tool": {"allow_network": "no"}}`:                                    false,
		`{"tool": {"apply_to": "tool"}}`:                                       false,
		`{"terminal": {"tool": {}}}`:                                           false,
		`{"terminal": true}`:                                                   false,
		`{"allowed_unix_sockets": ["$SSH_AUTH_SOCK", "abstract:x", "/run/x"]}`: true,
	} {
		for _, file := range []string{
			`{"terminal": {"sandbox": ` + block + `}}`,
			`{"macos": {"terminal": {"sandbox": ` +
				block + `}}}`,
		} {
			block, problem := document.Decode([]byte(file), "linux", document.Editor)
			decoded := problem == nil && len(block.Problems) == 0
			if err := valid(t, schema, file); (err == nil) != good || decoded != good {
				t.Errorf("%s: good %t, the schema says %v, decoding %v", file, good, err, block.Problems)
			}
		}
	}
	// The schema may also find what only evaluation finds.
	for _, block := range []string{
		`{"toolchains": ["cobol"]}`, `{"allowed_env_vars": ["*"]}`,
		`{"allowed_env_vars": ["A-B"]}`, `{"allowed_env_vars": ["++A"]}`,
		`{"additional_read_only_paths": ["~root/x", ""]}`,
	} {
		if valid(t, schema, `{"terminal": {"sandbox": `+block+`}}`) == nil {
			t.Errorf("%s is valid", block)
		}
	}
	for _, other := range []string{
		`{"theme": "One", "terminal": {"font_size": 12, "shell": "zsh"}, "lsp": {"x": [1]}}`,
		`{}`,
	} {
		if err := valid(t, schema, other); err != nil {
			t.Errorf("keys of other programs: %v", err)
		}
	}
}

// Random settings are valid, or have a value that decoding or evaluation
// diagnoses.
func TestSchema_AcceptsWhatCounts(t *testing.T) {
	t.Parallel()
	schema := compileSchema(t)
	f := resolvetest.InMemory(settingstest.Tree)
	settingstest.ForPairs(t, 300, func(user, _ string) {
		file := `{"terminal": {"sandbox": ` + user + `}}`
		diagnostics := snapshotOf(t, f, user, "").Diagnostics()
		if err := valid(t, schema, file); err != nil &&
			!strings.Contains(settingstest.Said(diagnostics, settingstest.UserFile), "error: ") {
			t.Errorf("%s: %v", file, err)
		}
	})
}

// The schema describes each key, with its default and, if there is a choice,
// every value.
func TestSchema_SaysWhatALanguageServerShows(t *testing.T) {
	t.Parallel()
	type node struct {
		Description      string           `json:"description"`
		Default          *json.RawMessage `json:"default"`
		Enum             []any            `json:"enum"`
		EnumDescriptions []string         `json:"enumDescriptions"`
		Items            *node            `json:"items"`
		Examples         []string         `json:"examples"`
		Pattern          string           `json:"pattern"`
		Properties       map[string]*node `json:"properties"`
		Snippets         []any            `json:"defaultSnippets"`
	}
	var schema struct {
		Definitions map[string]*node `json:"definitions"`
	}
	must(t, json.Unmarshal(Schema(), &schema))
	sandbox := schema.Definitions["sandbox"]
	if len(sandbox.Snippets) == 0 {
		t.Error("no snippets")
	}
	for _, l := range document.Keys() {
		found := sandbox
		for name := range strings.SplitSeq(l.Name, ".") {
			if found = found.Properties[name]; found == nil {
				t.Fatalf("%s is not in the schema", l.Name)
			}
		}
		if found.Description == "" {
			t.Errorf("%s has no description", l.Name)
		}
		if len(found.Enum) != len(found.EnumDescriptions) {
			t.Errorf("%s: %d values, %d descriptions", l.Name, len(found.Enum), len(found.EnumDescriptions))
		}
		if items := found.Items; items != nil && len(items.Enum) == 0 &&
			(items.Pattern == "" || len(items.Examples) == 0) {
			t.Errorf("%s: entries have neither values nor a pattern with examples", l.Name)
		}
	}
	if got := len(sandbox.Properties["toolchains"].Items.Enum); got != len(toolchain.All) {
		t.Errorf("%d toolchains", got)
	}
}

// People copy the examples of the documentation.
func TestSchema_AcceptsTheDocumentation(t *testing.T) {
	t.Parallel()
	schema := compileSchema(t)
	blocks := 0
	for _, file := range []string{"../README.md", "../docs/settings.md"} {
		text, err := os.ReadFile(file)
		must(t, err)
		for _, part := range strings.Split(string(text), "```jsonc\n")[1:] {
			block, _, _ := strings.Cut(part, "```")
			blocks++
			if err := valid(t, schema, block); err != nil {
				t.Errorf("%s: %v\n%s", file, err, block)
			}
			if block, problem := document.Decode([]byte(block), "linux", document.Editor); problem != nil ||
				len(block.Problems) > 0 {
				t.Errorf("%s: %v %v", file, problem, block.Problems)
			}
		}
	}
	if blocks < 3 {
		t.Errorf("only %d examples were found", blocks)
	}
}
