package startup

import (
	"fmt"
	"strings"
	"testing"
)

func TestMentioned(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"src() { [ -r \"$1\" ] && . \"$1\"; }\nsrc ~/a; src \"$HOME/b\" '/opt/c'":    "/h/a /h/b /opt/c",
		"files=(~/a \"${HOME}\"/b $HOME/c)\nfor f in \"${files[@]}\"; do . $f; done": "/h/a /h/b /h/c",
		"set -gx X ~/a; setenv Y ~/b; eval \". ~/c\"; alias t='sh ~/d -v'":           "/h/a /h/b /h/c /h/d",
		"if x; then F=~/a; else F=~/b; fi; . $F":                                     "/h/a /h/b",
		"X=${A:-~/a}:${B:-$HOME/b}:/opt/c":                                           "/h/a /h/b /opt/c",
		"ExecStart=%h/a --x=${env:HOME}/b":                                           "/h/a /h/b",
		"source ($env.HOME)/a; $env.X = /opt/b":                                      "/h/a /opt/b",
		"# ~/a\n  # /opt/b\nx # y":                                                   "",
		"echo a/b ./c ../d x~/e https://f.g/h":                                       "",
		". ~/a/../b//c/; cd ~/; cd ~; cd /; . ~/d":                                   "/h/b/c /h/d",
		". ~/a; . ~/a; . $HOME/a":                                                    "/h/a",
		"~/a|/opt/b<~/c>~/d&~/e;~/f":                                                 "/h/a /opt/b /h/c /h/d /h/e /h/f",
		"":                                                                           "",
		". \"$ZSH\"/a; . $(brew --prefix)/b; . ${X}/c":                               "",
		"nnoremap x :!~/a<CR>; ExecStart=!%h/b; @/opt/c":                             "/h/a /h/b /opt/c",
		"x '/opt/d' \"/opt/e\" \"$HOME\"/f":                                          "/opt/d /opt/e /h/f",
	} {
		if got := strings.Join(Mentioned(text, "/h"), " "); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
	var many strings.Builder
	for i := range 2 * maxMentioned {
		fmt.Fprintf(&many, "x ~/%d\n", i)
	}
	if n := len(Mentioned(many.String(), "/h")); n != maxMentioned {
		t.Errorf("%d paths of a long text", n)
	}
	if got := Mentioned(". ~/a", ""); got != nil {
		t.Errorf("without a home directory: %q", got)
	}
}
