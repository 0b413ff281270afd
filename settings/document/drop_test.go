package document

import "testing"

func TestDropEntry_KeepsEverythingElse(t *testing.T) {
	t.Parallel()
	const key = "additional_read_only_paths"
	in := func(list string) string {
		return `{"terminal": {"sandbox": {"enabled": true, "additional_read_only_paths": ` + list + `}}}`
	}
	for before, after := range map[string]string{
		`["/gone"]`:             `[]`,
		`[ "/gone", ]`:          `[]`,
		`["/a", "/gone"]`:       `["/a"]`,
		`["/gone", "/b"]`:       `["/b"]`,
		`["/a", "/gone", "/b"]`: `["/a", "/b"]`,
		"[\n  \"/a\", // one\n  \"/gone\", // two\n  \"/b\", // three\n]": "[\n  \"/a\", // one\n // two\n  \"/b\", // three\n]",
		"[\n  \"/a\", // one\n  \"/gone\" // two\n]":                      "[\n  \"/a\" // one\n // two\n]",
		"[\n  // why\n  \"/gone\",\n]":                                    "[\n  // why\n]",
		"[\r\n\t\"/a\",\r\n\t\"/gone\",\r\n]":                             "[\r\n\t\"/a\",\r\n]",
		`["/a" /* x */, "/gone"]`:                                         `["/a" /* x */]`,
		`["/a" /* x */, "/gone" /* y */, ]`:                               "[\"/a\" /* x */,  /* y */\n ]",
		`["/b"]`:                                                          `["/b"]`,
		`null`:                                                            `null`,
	} {
		got, err := DropEntry([]byte("\ufeff"+in(before)), "linux", key, "/gone", key)
		if err != nil || string(got) != "\ufeff"+in(after) {
			t.Errorf("%q: %v\ngot  %q\nwant %q", before, err, got, in(after))
		}
		if _, problem := Decode(got, "linux", Editor); problem != nil {
			t.Errorf("%q becomes %q: %v", before, got, problem)
		}
	}
	for name, text := range map[string]string{
		"another list": `{"terminal": {"sandbox": {"hidden_paths": ["/gone"]}}}`, "empty": "", "no JSON": "{",
		"of tools alone": `{"terminal": {"sandbox": {"tool": {"additional_read_only_paths": ["/gone"]}}}}`,
		"what does not count": `{"terminal": {"sandbox": {"additional_read_only_paths": ["/gone"]}},
			"linux": {"terminal": {"sandbox": {"additional_read_only_paths": ["/a"]}}}}`,
	} {
		if got, err := DropEntry([]byte(text), "linux", key, "/gone", key); err != nil || string(got) != text {
			t.Errorf("%s: %v: %q", name, err, got)
		}
	}
}

// An entry stays where it counts without the one that makes it needless.
func TestDropEntry_OnlyBesideTheOther(t *testing.T) {
	t.Parallel()
	const read, write = "additional_read_only_paths", "additional_read_write_paths"
	in := func(block string) string { return `"terminal": {"sandbox": {` + block + `}}` }
	both := `"` + read + `": ["/x"], "` + write + `": ["/x"]`
	for name, test := range map[string]struct {
		text  string
		drops bool
	}{
		"beside it":           {`{` + in(both) + `}`, true},
		"both of this system": {`{"linux": {` + in(both) + `}}`, true},
		"others need it": {
			`{` + in(`"`+read+`": ["/x"]`) + `, "linux": {` + in(`"`+write+`": ["/x"]`) + `}}`, false,
		},
		"another system writes less": {
			`{` + in(both) + `, "macos": {` + in(`"`+write+`": []`) + `}}`, false,
		},
	} {
		got, err := DropEntry([]byte(test.text), "linux", read, "/x", write)
		if err != nil || (string(got) != test.text) != test.drops {
			t.Errorf("%s: %v: %s", name, err, got)
		}
	}
}
