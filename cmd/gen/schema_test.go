//go:build unix

package main

import (
	"encoding/json"
	"slices"
	"testing"
)

// anyObject is a JSON object.
type anyObject = map[string]any

func TestSettingsSchema_DescribesTheWholeFile(t *testing.T) {
	t.Parallel()
	var schema anyObject
	if err := json.Unmarshal([]byte(artefact(t, "settings/schema.json")), &schema); err != nil {
		t.Fatal(err)
	}
	// at follows keys and references into the schema.
	at := func(keys ...string) anyObject {
		t.Helper()
		node := schema
		for _, key := range keys {
			properties, _ := node["properties"].(anyObject)
			node, _ = properties[key].(anyObject)
			if ref, ok := node["$ref"].(string); ok {
				node, _ = schema["definitions"].(anyObject)[ref[len("#/definitions/"):]].(anyObject)
			}
			if node == nil {
				t.Fatalf("no schema for %q", keys)
			}
		}
		return node
	}
	for _, keys := range [][]string{nil, {"terminal"}, {"linux"}, {"macos"}, {"windows"}} {
		if _, closed := at(keys...)["additionalProperties"]; closed {
			t.Errorf("%q: refuses the keys of other programs", keys)
		}
	}
	for _, keys := range [][]string{
		{"terminal", "sandbox"},
		{"linux", "terminal", "sandbox"},
		{"terminal", "sandbox", "system_paths"},
	} {
		if at(keys...)["additionalProperties"] != false {
			t.Errorf("%q: accepts unknown keys", keys)
		}
	}

	enabled := at("terminal", "sandbox", "enabled")
	if got := types(enabled); !slices.Equal(got, []string{"boolean", "null"}) || enabled["default"] != false {
		t.Errorf("enabled: got types %q, default %v", got, enabled["default"])
	}
	applyTo := at("terminal", "sandbox", "apply_to")
	values, descriptions := applyTo["enum"].([]any), applyTo["enumDescriptions"].([]any)
	if !slices.Equal(values, []any{"terminal", "tool", "both", "neither", nil}) || len(descriptions) != len(values) ||
		applyTo["default"] != "both" {
		t.Errorf("apply_to: got values %v, descriptions %v, default %v", values, descriptions, applyTo["default"])
	}
	executable := at("terminal", "sandbox", "system_paths", "executable")
	value, has := executable["default"]
	if got := types(executable); !slices.Equal(got, []string{"array", "null"}) || !has || value != nil {
		t.Errorf("system_paths.executable: got types %q, default %v (present: %v)", got, value, has)
	}
	variables, _ := at("terminal", "sandbox", "allowed_env_vars")["default"].([]any)
	if !slices.Contains(variables, any("PATH")) {
		t.Errorf("allowed_env_vars: got the default %v, want it to have PATH", variables)
	}
}

func types(node anyObject) []string {
	var names []string
	list, _ := node["type"].([]any)
	for _, name := range list {
		names = append(names, name.(string))
	}
	return names
}

func TestDefaultJSON_RefusesUnknownKeys(t *testing.T) {
	t.Parallel()
	if value, err := defaultJSON("no_such_key"); err == nil {
		t.Errorf("got %s, want an error", value)
	}
}
