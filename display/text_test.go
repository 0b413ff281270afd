package display

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

func TestText(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ name, in, want string }{
		{"plain path", "/home/ü/My Documents/x (1).txt", "/home/ü/My Documents/x (1).txt"},
		{"decomposed letters", "/home/u\u0308", "/home/u\u0308"},
		{"line ends", "a\nb\r\tc\u2028d\u0085e", `a\nb\r\tc\u2028d\u0085e`},
		{"escape sequence", "\x1b[2Jx\x9b\x7f", `\x1b[2Jx\x9b\x7f`},
		{"other direction", "a\u202egnp.exe\u2066", `a\u202egnp.exe\u2066`},
		{"no width", "a\u200bb\ufeffc\u00add\u3164e\ufe0f\U000e0041", `a\u200bb\ufeffc\u00add\u3164e\ufe0f\U000e0041`},
		{"command link", "[click](command:workbench.action.quit)", `[click]\x28command:workbench.action.quit)`},
		{"address", "https://example.com/x", `https:\x2f/example.com/x`},
		{"entry", "tcp://example.com:443", "tcp://example.com:443"},
		{"longer scheme", "xtcp://example.com ss+tls://example.com", `xtcp:\x2f/example.com ss+tls:\x2f/example.com`},
		{"list of paths", "/a:/b", "/a:/b"},
		{"icon", "$(error)", `$\x28error)`},
		{"HTML and code", "<b>`x`", `\x3cb>\x60x\x60`},
		{"backslash", `\n`, `\\n`},
		{"not UTF-8", "a\xffb", `a\xffb`},
		{"a pile of marks", "a\u0301\u0302\u0303\u0304", "a\u0301\u0302" + `\u0303\u0304`},
		{"a mark on what is no letter", "\u0338a/\u0338", `\u0338a/\u0338`},
		{"blank symbols", "a\u2800b\U0001d159c", `a\u2800b\U0001d159c`},
		{"many blanks", "a b   c", `a b \x20\x20c`},
		{"characters by name", "R&D &lt;&#x202e; & co;", `R&D \x26lt;\x26#x202e; & co;`},
		{"wide blanks", "a\u00a0\u3000b", `a\u00a0\u3000b`},
	} {
		if got := Text(test.in); got != test.want {
			t.Errorf("%s: Text(%q) = %q, want %q", test.name, test.in, got, test.want)
		}
	}
	if got := Quote("a\"b\u201dc\uff02"); got != `"a\"b\u201dc\uff02"` {
		t.Errorf("Quote: %s", got)
	}
}

func TestLine(t *testing.T) {
	t.Parallel()
	fit := "use `sandbox-sidecar init`:  " + Quote("C:\\x\n[a](command:b)\x1b$(error)://") + " <DIR>"
	if got := Line(fit); got != fit {
		t.Errorf("a safe line became %s", got)
	}
	if got, want := Line("a\n\x1b[31m\u202e[x](command:y) $(error) http://z"),
		`a\n\x1b[31m\u202e[x]\x28command:y) $\x28error) http:\x2f/z`; got != want {
		t.Errorf("Line = %s, want %s", got, want)
	}
	if n := utf8.RuneCountInString(Line(strings.Repeat("x", 1<<20))); n != MaxLine {
		t.Errorf("%d characters", n)
	}
}

func TestEscape_ReadsABoundedPart(t *testing.T) {
	t.Parallel()
	got := Escape("start" + strings.Repeat("x", 1<<20) + "end")
	if len(got) > scanned+len("…") || !strings.HasPrefix(got, "start") || !strings.HasSuffix(got, "end") ||
		!strings.Contains(got, "…") {
		t.Errorf("%d bytes", len(got))
	}
}

func TestText_DropsItsMiddle(t *testing.T) {
	t.Parallel()
	got := Text("/start/" + strings.Repeat("\x1b", 500) + "/end")
	if n := utf8.RuneCountInString(got); n > MaxText || n < MaxText-10 {
		t.Errorf("%d characters: %s", n, got)
	}
	if !strings.HasPrefix(got, "/start/") || !strings.HasSuffix(got, "/end") {
		t.Errorf("start or end is lost: %s", got)
	}
	if rest := strings.NewReplacer("/start/", "", "/end", "", "…", "", `\x1b`, "").Replace(got); rest != "" {
		t.Errorf("half an escape is left: %q in %s", rest, got)
	}
}

func FuzzText(f *testing.F) {
	f.Add("[a](command:b)\n\x1b[31m\u202e://")
	f.Fuzz(func(t *testing.T, in string) {
		got := Text(in)
		if utf8.RuneCountInString(got) > MaxText {
			t.Errorf("%d characters of %q", utf8.RuneCountInString(got), in)
		}
		if again := Line(got); again != got {
			t.Errorf("Line(%q) = %q", got, again)
		}
		others := strings.NewReplacer("tcp://", "", "tls://", "").Replace(got)
		if strings.Contains(got, "](") || strings.Contains(others, "://") || strings.ContainsAny(got, "`<\n") {
			t.Errorf("Text(%q) = %q", in, got)
		}
		for _, r := range got {
			if !unicode.IsPrint(r) {
				t.Errorf("Text(%q) = %q holds %U", in, got, r)
			}
		}
	})
}
