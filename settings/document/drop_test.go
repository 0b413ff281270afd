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
		got, err := DropEntry([]byte("\ufeff"+in(before)), "linux", key, "/gone")
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
		if got, err := DropEntry([]byte(text), "linux", key, "/gone"); err != nil || string(got) != text {
			t.Errorf("%s: %v: %q", name, err, got)
		}
	}
}
