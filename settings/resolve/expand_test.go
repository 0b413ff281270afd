package resolve

import "testing"

func TestExpand(t *testing.T) {
	t.Parallel()
	h := Host{Home: "/h", Env: map[string]string{"A": "/a", "E": "", "T": "~/x", "R": "rel", "N": "\x00"}}
	for text, want := range map[string]string{
		"~": "/h", "~/": "/h/", "~/x": "/h/x", "$A/b": "/a/b", "${A}b": "/ab", "/x$A": "/x/a", "/x/$": "/x/$",
		"/x/$-": "/x/$-", "/~": "/~",
		"/a/../b": "/a/../b", "/$$A": "/$/a", "/\xff": "/\xff", "/'\"\n": "/'\"\n",
		"$E": "", "$NO": "", "$T": "", "$R": "", "$N": "", "${A": "", "${}": "", "${A-b}": "", "~u": "",
		"": "", "x": "", "./x": "", "/\x00": "",
	} {
		got, err := h.Expand(text, "")
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q, %v; want %q", text, got, err, want)
		}
	}
	if got, err := h.Expand("x/../y", "/p"); got != "/p/x/../y" || err != nil {
		t.Errorf("relative to a project: %q, %v", got, err)
	}
	if _, err := (Host{}).Expand("~/x", ""); err == nil {
		t.Error("a home directory out of nowhere")
	}
}
