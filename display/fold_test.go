package display

import (
	"bytes"
	"strings"
	"testing"
)

func TestFold_KeepsWhatIsToBeCopied(t *testing.T) {
	t.Parallel()
	long := `"/` + strings.Repeat("directory/", 12) + `file with blanks"`
	for _, test := range []struct {
		line string
		hang int
		want string
	}{
		{"short", 2, "short"},
		{strings.Repeat("x", 80), 2, strings.Repeat("x", 80)},
		{strings.Repeat("x", 200), 2, strings.Repeat("x", 200)},
		{strings.Repeat("word ", 15) + "words", 2, strings.Repeat("word ", 15) + "words"},
		{strings.Repeat("word ", 15) + "longer", 2, strings.TrimSpace(strings.Repeat("word ", 15)) + "\n  longer"},
		{"  " + strings.Repeat("a ", 40), 4, "  " + strings.TrimSpace(strings.Repeat("a ", 39)) + "\n    a"},
		{"read " + long + " is refused", 2, "read\n  " + long + "\n  is refused"},
		{`it's 5" wide: ` + strings.Repeat("w ", 40), 2, `it's 5" wide: ` +
			strings.TrimSpace(strings.Repeat("w ", 33)) + "\n  " + strings.TrimSpace(strings.Repeat("w ", 7))},
		{"run `a b` " + strings.Repeat("c", 69) + " `d e`", 2, "run `a b` " + strings.Repeat("c", 69) + "\n  `d e`"},
		{`"a \" b" ` + strings.Repeat("c", 72), 2, `"a \" b"` + "\n  " + strings.Repeat("c", 72)},
		// East Asian characters take two columns, a mark takes none.
		{strings.Repeat("日本 ", 17), 2, strings.TrimSpace(strings.Repeat("日本 ", 16)) + "\n  日本"},
		{
			strings.Repeat("e\u0301", 40) + " " + strings.Repeat("e\u0301", 39), 2,
			strings.Repeat("e\u0301", 40) + " " + strings.Repeat("e\u0301", 39),
		},
	} {
		if got := Fold(test.line, test.hang); got != test.want {
			t.Errorf("%q:\ngot  %q\nwant %q", test.line, got, test.want)
		}
	}
}

func TestFolding_FoldsEachLine(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	words := strings.TrimSpace(strings.Repeat("0123456 ", 12))
	text := words + "\n    " + words + "\n\nprompt: "
	if n, err := Folding(&b).Write([]byte(text)); n != len(text) || err != nil {
		t.Errorf("wrote %d bytes of %d: %v", n, len(text), err)
	}
	first := strings.TrimSpace(strings.Repeat("0123456 ", 10))
	indented := strings.TrimSpace(strings.Repeat("0123456 ", 9))
	want := first + "\n  0123456 0123456\n    " + indented + "\n      0123456 0123456 0123456\n\nprompt: "
	if b.String() != want {
		t.Errorf("got\n%s\nwant\n%s", &b, want)
	}
}

func FuzzFold(f *testing.F) {
	f.Add(`  sandbox-sidecar: "a b" c`, 2)
	f.Add(strings.Repeat(`"x y" `, 30), 30)
	f.Fuzz(func(t *testing.T, line string, hang int) {
		hang = min(max(hang, 0), Columns/2)
		line = Line(line)
		folded := Fold(line, hang)
		got, want := strings.Join(strings.Fields(folded), " "), strings.Join(strings.Fields(line), " ")
		if got != want {
			t.Errorf("the words change: %q becomes %q", line, folded)
		}
		for i, part := range strings.Split(folded, "\n") {
			if rest := strings.TrimLeft(part, " "); Width(part) > Columns && firstUnit(rest) != rest {
				t.Errorf("line %d of %q could be folded", i, folded)
			}
		}
	})
}
