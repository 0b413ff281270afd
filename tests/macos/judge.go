package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"io"
	"maps"
	"slices"
	"strings"
)

// event is a line of "go test -json", or of an editor's tests that print the same.
type event struct{ Action, Package, ImportPath, Test, Output string }

// module begins the names of packages, and is left out in tables.
const module = "github.com/sandbox-sidecar/sandbox-sidecar/"

// judgeTests compares results with a golden list of tests that must pass: lines of
// "PACKAGE TEST", or "PACKAGE" for all of it. A test that is not in the list is a
// row if it fails. What was skipped or has not run has not passed.
func judgeTests(golden []string, events io.Reader) []row {
	outcome, output := map[string]string{}, map[string]string{}
	lines := bufio.NewReader(events)
	for {
		line, err := lines.ReadBytes('\n')
		var e event
		if json.Unmarshal(line, &e) == nil && e.Action != "" {
			name := strings.TrimPrefix(cmp.Or(e.Package, e.ImportPath), module)
			if e.Test != "" {
				name += " " + e.Test
			}
			switch e.Action {
			case "pass", "fail", "skip":
				outcome[name] = e.Action
			case "build-fail":
				outcome[name] = "fail"
			case "output", "build-output":
				output[name] += e.Output
			}
		}
		if err != nil {
			break
		}
	}
	var rows []row
	add := func(name string) {
		got := cmp.Or(outcome[name], "not run")
		r := row{what: name, want: "pass", got: got}
		if r.differs() {
			r.said = tail(output[name])
		}
		rows = append(rows, r)
	}
	for _, name := range golden {
		add(name)
	}
	for _, name := range slices.Sorted(maps.Keys(outcome)) {
		if outcome[name] == "fail" && !slices.Contains(golden, name) {
			add(name)
		}
	}
	return rows
}

// tail is the end of a text.
func tail(text string) string {
	const most = 300
	text = strings.TrimSpace(text)
	if len(text) > most {
		text = "… " + strings.ToValidUTF8(text[len(text)-most:], "")
	}
	return text
}
