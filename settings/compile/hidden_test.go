package compile

import (
	"slices"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/settings/document"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/resolve/resolvetest"
)

// A * of the directory that an entry is relative to is a part of its name.
func TestHidden_AStarCountsOnlyInTheEntry(t *testing.T) {
	t.Parallel()
	f := resolvetest.Tree(t, map[string]string{
		"/home/u/project/": "", "/srv/*/.env": "", "/srv/*/a.key": "", "/srv/*/sub/x": "", "/srv/other/a.key": "",
		"/home/u/a.key": "",
	})
	for _, test := range []struct {
		entry  string
		hidden []string
		doubt  bool
	}{
		{".env", []string{"/srv/*/.env"}, false},
		{"*.key", []string{"/srv/*/a.key"}, false},
		{"sub/*", []string{"/srv/*/sub/x"}, false},
		{"./.env", []string{"/srv/*/.env"}, false},
		{"~/*.key", []string{"/home/u/a.key"}, false},
		{".", nil, false},
		{"*/x", nil, true},
		{"/srv/*/a.key", nil, true},
		{"../*/a.key", nil, true},
		{"../*", []string{"/srv/other", "/srv/other/a.key"}, false},
		{"sub/..", nil, false},
	} {
		s := snapshotOf(t, f, `{"enabled": true, "hidden_paths": ["`+test.entry+`"]}`, "")
		s.ProjectDir = "/srv/*"
		c := s.Compile(document.KindTool)
		if doubt := c.Doubt != nil; doubt != test.doubt {
			t.Errorf("%s: %v", test.entry, c.Doubt)
		}
		for _, want := range test.hidden {
			if _, hidden := c.Policy.HiddenAt(want); !hidden {
				t.Errorf("%s does not hide %s: %v", test.entry, want, c.Policy.Hidden)
			}
		}
		for _, other := range []string{"/srv/other", "/srv/other/a.key", "/srv/*"} {
			if _, hidden := c.Policy.HiddenAt(other); hidden && !slices.Contains(test.hidden, other) {
				t.Errorf("%s hides %s", test.entry, other)
			}
		}
	}
}
