package document

import (
	"slices"
	"testing"
)

func TestAddEntry_KeepsEverythingElse(t *testing.T) {
	t.Parallel()
	const key = "additional_read_only_paths"
	for name, test := range map[string]struct {
		before, after string
		base          []string
	}{
		"no file": {"", "{\n  \"terminal\": {\n    \"sandbox\": {\n      \"additional_read_only_paths\": " +
			"[\"/new\"]\n    }\n  }\n}\n", nil},
		"comments alone": {
			"// mine\n", "// mine\n{\n  \"terminal\": {\n    \"sandbox\": {\n      \"additional_read_only_paths\": " +
				"[\"/low\", \"/new\"]\n    }\n  }\n}\n", []string{"/low"},
		},
		"a comment alone, without an end of its line": {
			"\ufeff// mine", "\ufeff// mine\n{\n  \"terminal\": {\n    \"sandbox\": {\n      " +
				"\"additional_read_only_paths\": [\"/new\"]\n    }\n  }\n}\n", nil,
		},
		"an empty object": {`{}`, `{"terminal": {"sandbox": {"additional_read_only_paths": ["/new"]}}}`, nil},
		"no block": {
			"{\n\t\"theme\": \"x\", // mine\n}\n",
			"{\n\t\"theme\": \"x\", // mine\n\t\"terminal\": {\n\t\t\"sandbox\": " +
				"{\n\t\t\t\"additional_read_only_paths\": [\"/new\"]\n\t\t}\n\t},\n}\n", nil,
		},
		"no key": {
			"{\n  \"terminal\": {\n    \"sandbox\": {\n      /* on */ \"enabled\": true // yes\n    }\n  }\n}",
			"{\n  \"terminal\": {\n    \"sandbox\": {\n      /* on */ \"enabled\": true, // yes\n      " +
				"\"additional_read_only_paths\": [\"/low\", \"/new\"]\n    }\n  }\n}",
			[]string{"/low"},
		},
		"no key, lines": {
			"{\n  \"terminal\": {\n    \"sandbox\": {\n      \"enabled\": true // yes\n    }\n  }\n}",
			"{\n  \"terminal\": {\n    \"sandbox\": {\n      \"enabled\": true, // yes\n      " +
				"\"additional_read_only_paths\": [\"/new\"]\n    }\n  }\n}", nil,
		},
		"one line": {
			`{"terminal":{"sandbox":{"additional_read_only_paths":["/a"],"enabled":true}}}`,
			`{"terminal":{"sandbox":{"additional_read_only_paths":["/a", "/new"],"enabled":true}}}`,
			[]string{"/not"},
		},
		"lines": {
			"{\"terminal\": {\"sandbox\": {\"additional_read_only_paths\": [\n  \"/a\", // first\n  \"/b\" // " +
				"second\n  // last word\n]}}}",
			"{\"terminal\": {\"sandbox\": {\"additional_read_only_paths\": [\n  \"/a\", // first\n  \"/b\", // " +
				"second\n  // last word\n  \"/new\"\n]}}}", nil,
		},
		"a comma behind the last": {
			"{\"terminal\": {\"sandbox\": {\"additional_read_only_paths\": [\n  \"/a\",\n],}}}",
			"{\"terminal\": {\"sandbox\": {\"additional_read_only_paths\": [\n  \"/a\",\n  \"/new\",\n],}}}", nil,
		},
		"an empty list": {
			`{"terminal": {"sandbox": {"additional_read_only_paths": []}}}`,
			`{"terminal": {"sandbox": {"additional_read_only_paths": ["/new"]}}}`,
			[]string{"/not"},
		},
		"null": {
			`{"terminal": {"sandbox": {"additional_read_only_paths": null}}}`,
			`{"terminal": {"sandbox": {"additional_read_only_paths": ["/low", "/new"]}}}`,
			[]string{"/low"},
		},
		"written twice": {
			`{"terminal": {"sandbox": {"additional_read_only_paths": ["/a"], "additional_read_only_paths": ["/b"]}}}`,
			`{"terminal": {"sandbox": {"additional_read_only_paths": ["/a"], ` +
				`"additional_read_only_paths": ["/b", "/new"]}}}`, nil,
		},
		"in the platform's block": {
			`{"terminal": {"sandbox": {"additional_read_only_paths": ["/a"]}}, ` +
				`"linux": {"terminal": {"sandbox": {"additional_read_only_paths": ["/b"]}}}}`,
			`{"terminal": {"sandbox": {"additional_read_only_paths": ["/a"]}}, ` +
				`"linux": {"terminal": {"sandbox": {"additional_read_only_paths": ["/b", "/new"]}}}}`, nil,
		},
		"another platform's": {
			`{"macos": {"terminal": {"sandbox": {"additional_read_only_paths": ["/b"]}}}, ` +
				`"terminal": {"sandbox": {"additional_read_only_paths": ["/a"]}}}`,
			`{"macos": {"terminal": {"sandbox": {"additional_read_only_paths": ["/b"]}}}, ` +
				`"terminal": {"sandbox": {"additional_read_only_paths": ["/a", "/new"]}}}`, nil,
		},
		"line ends of Windows": {
			"{\r\n  \"terminal\": {\r\n    \"sandbox\": {}\r\n  }\r\n}\r\n",
			"{\r\n  \"terminal\": {\r\n    \"sandbox\": {\"additional_read_only_paths\": [\"/new\"]}\r\n  }\r\n}\r\n",
			nil,
		},
		"a mark before it, a comment behind": {
			"\ufeff{\"terminal\": {\"sandbox\": {\"additional_read_only_paths\": [\"/a\"]}}} // end",
			"\ufeff{\"terminal\": {\"sandbox\": {\"additional_read_only_paths\": [\"/a\", \"/new\"]}}} // end", nil,
		},
	} {
		got, err := AddEntry([]byte(test.before), "linux", key, "/new", test.base)
		if err != nil || string(got) != test.after {
			t.Errorf("%s: %v\ngot  %q\nwant %q", name, err, got, test.after)
			continue
		}
		block, problem := Decode(got, "linux", Editor)
		if problem != nil || !slices.Contains(block.Values.AdditionalReadOnlyPaths, "/new") {
			t.Errorf("%s: it does not count: %v", name, problem)
		}
	}
	for _, bad := range []string{
		"{", "[]", `{"terminal": 1}`,
		`{"terminal": {"sandbox": {"additional_read_only_paths": "/a"}}}`, "{\"a\": \"\xff\"}",
	} {
		if got, err := AddEntry([]byte(bad), "linux", key, "/new", nil); err == nil {
			t.Errorf("%q becomes %q", bad, got)
		}
	}
}
