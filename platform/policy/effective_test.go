package policy

import "testing"

func TestAt_AddsRulesAndSubtractsProtectedPaths(t *testing.T) {
	t.Parallel()
	p := Policy{
		Rules: []Rule{
			{Path: "/a", Access: Read},
			{Path: "/a/b", Access: Execute},
			{Path: "/p", Access: ReadWrite},
			{Path: "/ab", Access: Write},
		},
		Protected: []Protected{
			{Path: "/p/.git", Origin: Origin{Key: "outer"}},
			{Path: "/p/.git/hooks", Origin: Origin{Key: "inner"}},
			{Path: "/q"},
		},
	}
	for path, want := range map[string]Access{
		"/": 0, "/a": Read, "/a/x": Read, "/a/b": Read | Execute, "/a/b/c": Read | Execute, "/a/bc": Read, "/ab": Write,
		"/abc": 0,
		"/p":   ReadWrite, "/p/.gitignore": ReadWrite, "/p/.git": Read | Execute, "/p/.git/hooks/x": Read |
			Execute, "/q": 0,
	} {
		if got := p.At(path); got != want {
			t.Errorf("%s: %s, want %s", path, got, want)
		}
	}
	if got, ok := p.ProtectedAt("/p/.git/hooks/x"); !ok || got.Origin.Key != "inner" {
		t.Errorf("the most specific: %+v, %t", got, ok)
	}
	if got, ok := p.ProtectedAt("/p"); ok {
		t.Errorf("above a protected path: %+v", got)
	}
}
