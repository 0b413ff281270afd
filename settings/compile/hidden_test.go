package compile

import (
	"fmt"
	"slices"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/document"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/resolve"
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

// Of a directory with more names than are listed it is not known what a pattern
// hides. So tools do not start, and the rest is hidden.
func TestHidden_PatternsNeedTheWholeDirectory(t *testing.T) {
	t.Parallel()
	for files, doubt := range map[int]bool{resolve.MaxNames - 2: false, resolve.MaxNames + 1: true} {
		entries := map[string]string{"/home/u/project/": "", "/home/u/project/keys/a.pem": ""}
		for i := range files {
			entries[fmt.Sprintf("/home/u/project/keys/%06d", i)] = ""
		}
		f := resolvetest.Tree(t, entries)
		for _, pattern := range []string{"keys/*.pem", "~/project/keys/*.pem"} {
			user := `{"enabled": true, "hidden_paths": ["` + pattern + `"]}`
			c := snapshotOf(t, f, user, "").Compile(document.KindTool)
			if is := c.Doubt != nil; is != doubt {
				t.Errorf("%s with %d files: %v", pattern, files, c.Doubt)
			}
			if _, hidden := c.Policy.HiddenAt("/home/u/project/keys/a.pem"); !hidden && !doubt {
				t.Errorf("%s with %d files hides nothing", pattern, files)
			}
		}
	}
}

// poetry, hatch and helm do nothing at all without these files.
func TestHidden_ProgramsReadWhatEachOfTheirCommandsNeeds(t *testing.T) {
	t.Parallel()
	files := map[string]string{"/home/u/project/": "", "/home/u/.config/containers/auth.json": ""}
	needed := []string{
		"/home/u/.config/pypoetry/auth.toml", "/home/u/.config/hatch/config.toml",
		"/home/u/.config/helm/registry/config.json",
	}
	for _, path := range needed {
		files[path] = ""
	}
	s := snapshotOf(t, resolvetest.InMemory(files), `{"enabled": true}`, "")
	p := s.Compile(document.KindTool).Policy
	for _, path := range needed {
		if !p.At(path).Has(policy.Read) {
			t.Errorf("%s cannot be read: %v", path, p.Hidden)
		}
		if s.Secrets()(path) == "" {
			t.Errorf("%s is no secret any more: it would be suggested", path)
		}
	}
	if p.At("/home/u/.config/containers/auth.json") != 0 {
		t.Error("control: a secret that a program needs for single commands can be read")
	}
}
