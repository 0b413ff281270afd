package display

import (
	"encoding/json"
	"flag"
	"os"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write testdata/cases.json")

// TestCases checks the cases that the clients' tests read too: the clients
// escape text that only they know.
func TestCases(t *testing.T) {
	t.Parallel()
	type shown struct {
		In    string `json:"in"`
		Text  string `json:"text"`
		Quote string `json:"quote"`
		Line  string `json:"line"`
	}
	var cases []shown
	for _, in := range []string{
		"", "/home/ü/My Documents/x (1).txt", "a\nb\r\tc\u2028d\u0085e", "\x1b[2Jx\u009b\x7f", "a\u202egnp.exe\u2066",
		"a\u200bb\ufeffc\u00add\u3164e\ufe0f\U000e0041",
		"[click](command:workbench.action.quit)", "x](command:a) $(error) <b>`x`", "https://example.com/x",
		"/a:/b", `\n\\`, "a\u0301\u0302\u0303\u0304", "\u0338a/\u0338",
		"a\u2800b\U0001d159c\ufffcd", "a b   c  ", "R&D &lt;&#x202e; & co;", "a\u00a0\u3000b",
		`a"b` + "\u201d\uff02\u2033", "日本語/ελληνικά/עברית", "😀 \U0001f468\u200d\U0001f469",
		"\ue000\U000f0000", strings.Repeat("x", 119) + "y", strings.Repeat("x", 120) + "y", "/start/" +
			strings.Repeat("\x1b", 500) + "/end",
		strings.Repeat("\u202e", 61) + strings.Repeat(`"`, 61), strings.Repeat("e\u0301", 200), strings.Repeat("😀",
			200), strings.Repeat("z", 3000), "$" + strings.Repeat("$(", 80),
	} {
		cases = append(cases, shown{in, Text(in), Quote(in), Line(in)})
	}
	want, err := json.MarshalIndent(cases, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	want = append(JSON(want), '\n')
	const file = "testdata/cases.json"
	if *update {
		if err := os.WriteFile(file, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(file)
	if err != nil || string(got) != string(want) {
		t.Errorf("%v: the cases differ; to update them: go test ./display -run TestCases -update", err)
	}
}
