package compile

import (
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/settings/document"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/resolve/resolvetest"
)

// A session can put a symlink where it may write. Such a link on the way to a
// project starts nothing; all other links are followed.
func TestCompile_SymlinksOnTheWayToAProject(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		entries map[string]string
		user    string
		others  []string
		link    string
	}{
		"a directory":          {entries: map[string]string{"/home/u/project/x": ""}},
		"a link of the user's": {entries: map[string]string{"/home/u/project": "-> /data/p", "/data/p/x": ""}},
		"the disk of a home":   {entries: map[string]string{"/home": "-> /disk/home", "/disk/home/u/project/x": ""}},
		"a home in git":        {entries: map[string]string{"/home/u/project": "-> /data/p", "/home/u/.git/HEAD": ""}},
		"a project beside it": {
			entries: map[string]string{"/home/u/project": "-> /data/p"}, others: []string{"/home/u/q"},
		},
		"in what is granted": {
			entries: map[string]string{"/home/u/project": "-> /home/u/.ssh", "/home/u/.ssh/id": ""},
			user:    `{"enabled": true, "additional_read_write_paths": ["~"]}`, link: "/home/u/project",
		},
		"in another project": {
			entries: map[string]string{"/home/u/project": "-> /home/u/.ssh", "/home/u/.ssh/id": ""},
			others:  []string{"/home/u/project", "/home/u"}, link: "/home/u/project",
		},
		"in another project, behind a link": {
			entries: map[string]string{
				"/home/u/project": "-> /data/mono/a", "/data/mono/a": "-> /home/u/.ssh",
				"/home/u/work": "-> /data/mono",
			},
			others: []string{"/home/u/work"}, link: "/data/mono/a",
		},
		"in a repository": {
			entries: map[string]string{
				"/home/u/project": "-> /data/mono/a", "/data/mono/a": "-> /home/u/.ssh", "/data/mono/.git/HEAD": "",
			},
			link: "/data/mono/a",
		},
		"above it, in a linked worktree": {
			entries: map[string]string{
				"/home/u/project": "-> /data/tree/a/b", "/data/tree/a": "-> /root", "/data/tree/.git": "gitdir: /x",
			},
			link: "/data/tree/a",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if test.user == "" {
				test.user = `{"enabled": true}`
			}
			s := snapshotOf(t, resolvetest.InMemory(test.entries), test.user, "")
			s.Others = test.others
			compiled := s.Compile(document.KindTool)
			link := ""
			if compiled.Redirect != nil {
				link = compiled.Redirect.Link
			}
			if link != test.link {
				t.Errorf("the link that a session could have made: %q, want %q", link, test.link)
			}
		})
	}
}

// What is not sandboxed is not refused either.
func TestCompile_SymlinksWithoutASandbox(t *testing.T) {
	t.Parallel()
	f := resolvetest.InMemory(map[string]string{"/home/u/project": "-> /home/u/.ssh", "/home/u/.ssh/id": ""})
	for user, want := range map[string]bool{`{"enabled": true}`: true, `{"enabled": false}`: false} {
		s := snapshotOf(t, f, user, "")
		s.Others = []string{"/home/u"}
		if got := s.Compile(document.KindTool).Redirect != nil; got != want {
			t.Errorf("settings %s: refused: %v, want %v", user, got, want)
		}
	}
}
