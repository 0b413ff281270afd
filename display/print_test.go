package display

import (
	"bytes"
	"encoding/json"
	"errors"
	"testing"
)

type named string

type stringer struct{}

func (stringer) String() string { return "s\n" }

func TestFprintf_OnlyTheFormatEndsLines(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	Fprintf(&b, "\x1b[33m%s %v %s %s %q %d\x1b[0m\n", "a\nb", errors.New("c\x1b[2J"), named("d\u202e"), stringer{},
		[]string{"e\n"}, 7)
	want := "\x1b[33m" + `a\nb c\x1b[2J d\u202e s\n ["e\\n"] 7` + "\x1b[0m\n"
	if b.String() != want {
		t.Errorf("got  %q\nwant %q", b.String(), want)
	}
}

func TestJSON_KeepsTheMeaning(t *testing.T) {
	t.Parallel()
	in := map[string]string{"a\u202e": "b\u007f\u200b\U000e0041\u0085ü日\"\\<"}
	text, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	fit := JSON(text)
	for _, r := range string(fit) {
		if !visible(r) {
			t.Errorf("%U is left in %q", r, fit)
		}
	}
	var out map[string]string
	if err := json.Unmarshal(fit, &out); err != nil || out["a\u202e"] != in["a\u202e"] {
		t.Errorf("%q became %q: %v", in, out, err)
	}
	var b bytes.Buffer
	if n, err := JSONWriter(&b).Write([]byte("a\u202e\xff\n")); n != 6 || err != nil ||
		b.String() != `a\u202e\ufffd`+"\n" {
		t.Errorf("wrote %d, %v: %q", n, err, b.String())
	}
}
