package agents

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
)

func TestParse_ReadsTheDocumentedExample(t *testing.T) {
	t.Parallel()
	document, err := os.ReadFile("../../docs/agents.md")
	_, example, found := strings.Cut(string(document), "agents/NAME.json`")
	_, example, begins := strings.Cut(example, "```jsonc\n")
	example, _, ends := strings.Cut(example, "```")
	if err != nil || !found || !begins || !ends {
		t.Fatalf("docs/agents.md has no example: %v", err)
	}
	a, err := Parse("mine", "/f", []byte(example))
	if err != nil || a.Name != "mine" || !a.Agent || a.Program != "my-agent" || a.About != "My agent." ||
		!slices.Equal(a.Before([]string{"x"}), []string{"--no-sandbox"}) || a.Why == "" ||
		len(a.Hosts) != 1 || len(a.Passed) != 2 || len(a.Places) != 2 {
		t.Fatalf("%v: %+v", err, a)
	}
	state, read := a.Places[0], a.Places[1]
	if !state.AlwaysPrivate || state.Shared != "" || !state.Create || state.Line != 5 {
		t.Errorf("what sessions write to the state could reach the agent outside: %+v", state)
	}
	if read.Access.Has(policy.Write) || read.Access.Has(policy.Execute) || read.Line != 6 {
		t.Errorf("%+v", read)
	}
}

func TestParse_RefusesWhatItDoesNotKnow(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		``: `"/f:1": not valid JSON`, `[]`: "/f:1",
		"{\n\"program\": \"p\",\n\"staet\": []}": `/f:3": unknown key "staet"`,
		`{}`:                                     `"program" is missing`,
		`{"program": ""}`:                        "expected a text", `{"program": ["p"]}`: "expected a text",
		`{"program": null}`:                             "expected a text",
		`{"program": "p", "program": "q"}`:              "written twice",
		`{"program": "p", "state": "~/x"}`:              "expected a list",
		`{"program": "p", "state": ["x"]}`:              "begins with",
		"{\"program\": \"p\",\n\n\"state\": [\n1]}":     "/f:4",
		`{"program": "p", "hosts": ["a..b"]}`:           "a..b",
		`{"program": "p", "variables": ["A_*"]}`:        "name of a variable",
		`{"program": "p", "variables": ["LD_PRELOAD"]}`: "run code",
		`{"program": "p", "args": [[]]}`:                "expected a text",
		`{"program": "p"} x`:                            "not valid JSON",
		"{\n  \"program\": oops\n}\n":                   `"/f:2": not valid JSON: invalid`,
		"{\n  \"program\": \"p\",\n":                    `"/f:2": not valid JSON`,
	} {
		if _, err := Parse("a", "/f", []byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}
