package compile

import (
	"slices"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/document"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/resolve/resolvetest"
)

// Files that the user's configuration of git names are readable, if nobody in a
// session can have named them and they hold no secret.
func TestNamedByGit(t *testing.T) {
	t.Parallel()
	tree := resolvetest.Tree(t, map[string]string{
		"/home/u/project/.git/HEAD": "",
		"/home/u/project/.git/config": "[include] path = /home/u/by-project\n" +
			"[core] excludesFile = /home/u/excluded-by-project\n",
		"/home/u/.gitconfig": "[include]\n\tpath = dotfiles/user.inc\n\tpath = ~/.ssh/id_rsa\n\tpath = ~/dir\n" +
			"\tpath = ~/link.inc\n\tpath = ~/loop.inc\n\tpath = ~/shared/mine.inc\n\tpath = ~/none\n" +
			"[includeIf \"onbranch:x\"]\n\tpath = ~/conditional.inc\n" +
			"[core]\n\texcludesFile = ~/ignored\n\tattributesFile = relative\n[alias]\n\tpath = ~/aliased\n",
		"/home/u/.config/git/config":    "[commit]\n\ttemplate = \"/home/u/tem plate\"\n",
		"/home/u/dotfiles/user.inc":     "[include] path = more.inc\n",
		"/home/u/dotfiles/more.inc":     "[user] name = U\n",
		"/home/u/loop.inc":              "[include] path = loop.inc\n",
		"/home/u/shared/mine.inc":       "[include] path = ~/by-session\n",
		"/home/u/link.inc":              "-> linked/real.inc",
		"/home/u/linked/real.inc":       "",
		"/home/u/conditional.inc":       "",
		"/home/u/ignored":               "",
		"/home/u/relative":              "",
		"/home/u/aliased":               "",
		"/home/u/tem plate":             "",
		"/home/u/dir/file":              "",
		"/home/u/.ssh/id_rsa":           "",
		"/home/u/by-project":            "",
		"/home/u/excluded-by-project":   "",
		"/home/u/by-session":            "",
		"/home/u/dotfiles/neighbour":    "",
		"/home/u/.config/git/neighbour": "",
	})
	read := func(settings string) (list []string) {
		p := snapshotOf(t, tree, settings, "").Compile(document.KindTool).Policy
		for _, rule := range p.Rules {
			if rule.Origin.Key == namedByGitKey {
				if rule.Access != policy.Read {
					t.Errorf("%s: %s", rule.Path, rule.Access)
				}
				list = append(list, rule.Path[len("/home/u/"):])
			}
		}
		slices.Sort(list)
		return list
	}
	want := []string{
		"by-session", "conditional.inc", "dotfiles/more.inc", "dotfiles/user.inc", "ignored", "linked/real.inc",
		"loop.inc", "shared/mine.inc", "tem plate",
	}
	if got := read(`{"enabled": true}`); !slices.Equal(got, want) {
		t.Errorf("readable: %q, want %q", got, want)
	}
	// What a session may write names nothing.
	without := slices.DeleteFunc(slices.Clone(want), func(name string) bool {
		return name == "by-session" || name == "shared/mine.inc" // the grant itself covers the second
	})
	if got := read(`{"enabled": true, "additional_read_write_paths": ["~/shared"]}`); !slices.Equal(got, without) {
		t.Errorf("if a session may change one: %q, want %q", got, without)
	}
	hidden := `{"enabled": true, "hidden_paths": ["~/dotfiles"]}`
	p := snapshotOf(t, tree, hidden, "").Compile(document.KindTool).Policy
	if policy.NewIndex(&p).At("/home/u/dotfiles/user.inc").Has(policy.Read) {
		t.Error("a hidden file is readable")
	}
}

// Files that start-up files of shells source are readable, if nobody in a session
// can have named them and they hold no secret.
func TestNamedByShells(t *testing.T) {
	t.Parallel()
	tree := resolvetest.Tree(t, map[string]string{
		"/home/u/project/": "",
		"/home/u/.profile": ". \"$HOME/.cargo/env\"\n. ~/.ssh/id_rsa\n. ~/token.sh\n. ~/none\n. ~/dir\n. ~/link.sh\n" +
			". ~/old-token.sh\n" +
			". ~/shared/mine.sh\n. ~/.profile\n",
		"/home/u/.kshrc":          ". ~/by-unread\n",
		"/home/u/project/.bashrc": ". ~/by-project\n",
		"/home/u/.cargo/env":      ". ~/more\n",
		"/home/u/more":            ". ~/.cargo/env\n",
		"/home/u/shared/mine.sh":  ". ~/by-session\n",
		"/home/u/token.sh":        "export GITHUB_TOKEN=ghp_0123456789abcdef\n. ~/by-token\n",
		"/home/u/old-token.sh":    "# export DB_PASS='hunter2hunter'\n",
		"/home/u/link.sh":         "-> linked/real.sh",
		"/home/u/linked/real.sh":  "",
		"/home/u/dir/file":        "",
		"/home/u/.ssh/id_rsa":     "",
		"/home/u/by-unread":       "",
		"/home/u/by-project":      "",
		"/home/u/by-session":      "",
		"/home/u/by-token":        "",
		"/home/u/.cargo/other":    "",
	})
	read := func(settings string) (list []string) {
		p := snapshotOf(t, tree, settings, "").Compile(document.KindTool).Policy
		for _, rule := range p.Rules {
			if rule.Origin.Key == namedByShellKey {
				if rule.Access != policy.Read {
					t.Errorf("%s: %s", rule.Path, rule.Access)
				}
				list = append(list, rule.Path[len("/home/u/"):])
			}
		}
		slices.Sort(list)
		return list
	}
	want := []string{".cargo/env", "by-session", "linked/real.sh", "more", "shared/mine.sh"}
	if got := read(`{"enabled": true}`); !slices.Equal(got, want) {
		t.Errorf("readable: %q, want %q", got, want)
	}
	// What a session may write names nothing.
	without := []string{".cargo/env", "linked/real.sh", "more"}
	if got := read(`{"enabled": true, "additional_read_write_paths": ["~/shared"]}`); !slices.Equal(got, without) {
		t.Errorf("if a session may change one: %q, want %q", got, without)
	}
	hidden := `{"enabled": true, "hidden_paths": ["~/.cargo"]}`
	p := snapshotOf(t, tree, hidden, "").Compile(document.KindTool).Policy
	if policy.NewIndex(&p).At("/home/u/.cargo/env").Has(policy.Read) {
		t.Error("a hidden file is readable")
	}
}

// A loop over a directory lists it. Sessions may read it if everything in it is
// sourced, and else the files that are.
func TestNamedByShells_Loops(t *testing.T) {
	t.Parallel()
	const loop = "for rc in ~/.bashrc.d/*; do\n\tif [ -f \"$rc\" ]; then\n\t\t. \"$rc\"\n\tfi\ndone\nunset rc\n"
	for name, test := range map[string]struct {
		bashrc string
		files  map[string]string
		want   []string
	}{
		"as it should be": {
			loop,
			map[string]string{"a": "", "b": ". ~/more\n"},
			[]string{".bashrc.d", ".bashrc.d/a", ".bashrc.d/b", "more"},
		},
		"nothing": {loop, map[string]string{"": ""}, nil},
		"a secret": {
			loop, map[string]string{"a": "", "b": "export TOKEN=ghp_0123456789abcdef\n"}, []string{".bashrc.d/a"},
		},
		"a directory":   {loop, map[string]string{"a": "", "b/c": ""}, []string{".bashrc.d/a"}},
		"a hidden file": {loop, map[string]string{"a": "", ".b": ""}, []string{".bashrc.d/a"}},
		"other files": {
			"for f in ~/.bashrc.d/*.sh; do . $f; done",
			map[string]string{"a.sh": "", "b": ""},
			[]string{".bashrc.d/a.sh"},
		},
		"a list": {
			"for f in ~/.bashrc.d/{a,c}; do . $f; done",
			map[string]string{"a": "", "b": ""},
			[]string{".bashrc.d/a"},
		},
		"what leads out": {
			loop, map[string]string{"a": "-> ../more", "b": ""}, []string{".bashrc.d", ".bashrc.d/b", "more"},
		},
	} {
		files := map[string]string{"/home/u/project/": "", "/home/u/.bashrc": test.bashrc, "/home/u/more": ""}
		for file, text := range test.files {
			files["/home/u/.bashrc.d/"+file] = text
		}
		read := func(settings string) (list []string) {
			p := snapshotOf(t, resolvetest.Tree(t, files), settings, "").Compile(document.KindTool).Policy
			for _, rule := range p.Rules {
				if rule.Origin.Key == namedByShellKey {
					list = append(list, rule.Path[len("/home/u/"):])
				}
			}
			slices.Sort(list)
			return list
		}
		if got := read(`{"enabled": true}`); !slices.Equal(got, test.want) {
			t.Errorf("%s: readable: %q, want %q", name, got, test.want)
		}
		if got := read(`{"enabled": true, "additional_read_write_paths": ["~/.bashrc"]}`); len(got) > 0 {
			t.Errorf("%s: by a file that sessions may write: %q", name, got)
		}
	}
}
