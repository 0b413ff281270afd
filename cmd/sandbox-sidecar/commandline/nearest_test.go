package commandline

import "testing"

func TestNearest(t *testing.T) {
	t.Parallel()
	p := Program{Commands: []Command{{Name: "exec"}, {Name: "explain"}, {Name: "ps"}, {Name: "policy"}}}
	for word, want := range map[string]string{
		"exce": "exec", "exe": "exec", "explani": "explain", "polcy": "policy", "sp": "ps",
		"": "", "x": "", "nonsense": "", "executive": "", "pö": "",
	} {
		if got := p.Nearest(word); got != want {
			t.Errorf("%q: %q, want %q", word, got, want)
		}
	}
}
