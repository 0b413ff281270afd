package commandline

import (
	"flag"
	"testing"
)

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

func TestNearestFlag(t *testing.T) {
	t.Parallel()
	flags := flag.NewFlagSet("c", flag.ContinueOnError)
	flags.String("project", "", "")
	flags.Bool("json", false, "")
	c := Command{Flags: flags}
	for word, want := range map[string]string{
		"projcet": "project", "jsn": "json", "hlep": "help", "nonsense": "", "p": "",
	} {
		if got := c.NearestFlag(word); got != want {
			t.Errorf("%q: %q, want %q", word, got, want)
		}
	}
	if got := (Command{}).NearestFlag("json"); got != "" {
		t.Errorf("without flags: %q", got)
	}
}
