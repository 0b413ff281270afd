//go:build unix

package main

import (
	"bytes"
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/settings"
	"github.com/tailscale/hujson"
)

// artefact generates one file.
func artefact(t *testing.T, path string) string {
	t.Helper()
	all, err := artefacts(moduleDir(t))
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(all, func(a Artefact) bool { return a.Path == path })
	if i < 0 {
		t.Fatalf("%s is not generated", path)
	}
	return string(all[i].Text)
}

// codeBlocks returns the contents of the fenced blocks of a language.
func codeBlocks(text, language string) []string {
	var blocks []string
	for _, m := range regexp.MustCompile("(?s)```"+language+"\n(.*?)```").FindAllStringSubmatch(text, -1) {
		blocks = append(blocks, m[1])
	}
	return blocks
}

func TestArtefacts_AreMarked(t *testing.T) {
	t.Parallel()
	all, err := artefacts(moduleDir(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range all {
		head := strings.Join(strings.SplitN(string(a.Text), "\n", 4)[:3], "\n")
		if !strings.Contains(head, marker) {
			t.Errorf("%s: not marked as generated:\n%s", a.Path, head)
		}
	}
}

func TestReferences_LinkToSectionsThatExist(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"docs/protocol.md", "docs/settings.md", "docs/containers.md"} {
		text := artefact(t, path)
		sections := map[string]bool{}
		for _, m := range regexp.MustCompile(`(?m)^#+ (.*)$`).FindAllStringSubmatch(text, -1) {
			target := anchor(strings.ReplaceAll(m[1], "`", ""))
			if sections[target] {
				t.Errorf("%s: two sections are called %q", path, target)
			}
			sections[target] = true
		}
		for _, m := range regexp.MustCompile(`\]\(#([^)]*)\)`).FindAllStringSubmatch(text, -1) {
			if !sections[m[1]] {
				t.Errorf("%s: a link to %q, which is no section", path, m[1])
			}
		}
	}
}

func TestSettingsReference_ExamplesAreSettings(t *testing.T) {
	t.Parallel()
	examples := codeBlocks(artefact(t, "docs/settings.md"), "jsonc")
	if len(examples) != 4 {
		t.Fatalf("got %d examples, want 4", len(examples))
	}
	type file struct {
		Terminal struct {
			Sandbox settings.Sandbox `json:"sandbox"`
		} `json:"terminal"`
	}
	for _, example := range examples {
		standard, err := hujson.Standardize([]byte(example))
		if err != nil {
			t.Errorf("%v in:\n%s", err, example)
			continue
		}
		var decoded struct {
			file
			Linux file `json:"linux"`
		}
		strict := json.NewDecoder(bytes.NewReader(standard))
		strict.DisallowUnknownFields()
		if err := strict.Decode(&decoded); err != nil {
			t.Errorf("%v in:\n%s", err, example)
		}
		sandbox := decoded.Terminal.Sandbox
		if sandbox.Mode == nil && (sandbox.Enabled == nil || !*sandbox.Enabled) {
			t.Errorf("the example does not switch the sandbox on:\n%s", example)
		}
	}
}

// nullable are the two members of an exit status, of which one is null.
var nullable = regexp.MustCompile(`"(exitCode|signal)": null`)

func TestProtocolReference_ExamplesAreFrames(t *testing.T) {
	t.Parallel()
	text := artefact(t, "docs/protocol.md")
	examples := codeBlocks(text, "json")
	if len(examples) != 22 {
		t.Errorf("got %d examples, want 22", len(examples))
	}
	for _, example := range examples {
		var frame struct {
			Version string          `json:"jsonrpc"`
			Params  json.RawMessage `json:"params"`
			Result  json.RawMessage `json:"result"`
		}
		if err := json.Unmarshal([]byte(example), &frame); err != nil {
			t.Errorf("%v in:\n%s", err, example)
		}
		if frame.Version != "2.0" || (frame.Params == nil) == (frame.Result == nil) {
			t.Errorf("neither a call nor an answer:\n%s", example)
		}
		// The sidecar never sends null for a list or an object.
		if strings.Contains(nullable.ReplaceAllString(example, ""), "null") {
			t.Errorf("an unfilled field in:\n%s", example)
		}
	}
	if name := regexp.MustCompile(`\bCode[A-Z]\w*`).FindString(text); name != "" {
		t.Errorf("the reference says %s, a name that only Go has", name)
	}
}
