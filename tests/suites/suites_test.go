//go:build linux

package main

import (
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
)

// Every expected difference is explained to users.
func TestExpected_NamesHeadingsOfTheDocument(t *testing.T) {
	t.Parallel()
	known, err := readExpected("expected")
	if err != nil {
		t.Fatal(err)
	}
	document, err := os.ReadFile("../../docs/differences.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range known {
		if !strings.Contains(string(document), "\n## "+e.why+"\n") {
			t.Errorf("%s: docs/differences.md has no heading %q", e.test, e.why)
		}
	}
	if why := explain(known, "go", "TestUnixgramServer/0"); why != "Unix datagram sockets" {
		t.Errorf("TestUnixgramServer/0 is explained by %q", why)
	}
	if why := explain(known, "cpython", "TestUnixgramServer"); why != "" {
		t.Errorf("a test of Python is explained by %q", why)
	}
}

func TestParse_ReadsBothKindsOfResults(t *testing.T) {
	t.Parallel()
	python, err := parsePython(
		[]byte(`<testsuites><testsuite><testcase name="a" /><testcase name="b"><skipped>x</skipped>` +
			`</testcase><testcase name="c"><error>y</error></testcase><testcase name=""><failure>z</failure></testcase>` +
			`</testsuite></testsuites>`))
	want := results{"a": "ok", "b": "skipped", "c": "failed"}
	if err != nil || !maps.Equal(python, want) {
		t.Errorf("%v, %v", python, err)
	}
	output := "=== RUN a\n--- PASS: a (0.00s)\n--- FAIL: c (0.1s)\n    --- SKIP: b (0.00s)\n"
	if got := parseGo(output); !maps.Equal(got, want) {
		t.Errorf("%v", got)
	}
}

// A test that fails by itself now and then is no difference.
func TestDifferences_HaveToRepeat(t *testing.T) {
	t.Parallel()
	runs := 0
	odd := suite{run: func(r *runner, _ string) (results, error) {
		runs++
		ended := results{"same": "ok", "always": "ok", "once": "ok"}
		if r.inside {
			ended["always"] = "failed"
			if runs == 2 {
				delete(ended, "once")
			}
		}
		return ended, nil
	}}
	total, list, err := new(runner).differences(odd, "")
	if err != nil || total != 3 || runs != 4 || !slices.Equal(list, []difference{{"always", "ok", "failed"}}) {
		t.Errorf("%d tests, %v, %v after %d runs", total, list, err, runs)
	}
}
