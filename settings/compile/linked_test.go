package compile

import (
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/document"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/resolve/resolvetest"
)

// A manager of dotfiles makes symlinks in directories that programs act on. What
// they lead to stays as it is: in the project, and in a wider grant.
func TestLinked(t *testing.T) {
	t.Parallel()
	files := map[string]string{
		"/tmp/": "", "/home/u/project/": "", "/home/u/dot/plain": "", "/home/u/dot/fish/config.fish": "",
		"/home/u/dot/nvim/lua/a.lua": "", "/home/u/dot/ssh/real": "", "/home/u/dot/x.service": "",
		"/home/u/dot/codex.toml": "", "/home/u/dot/deep/4": "", "/home/u/dot/deep/5": "", "/home/u/dot/tool": "",
		"/home/u/dot/cached": "", "/home/u/dot/ext/main.js": "", "/home/u/dot/moved": "", "/home/u/dot/modules/x": "",
		"/home/u/dot/code.json": "", "/home/u/dot/agent.conf": "",
	}
	links := map[string]string{
		"/home/u/.config/fish/config.fish":                                 "../../dot/fish/config.fish",
		"/home/u/.config/nvim/lua":                                         "/home/u/dot/nvim/lua",
		"/home/u/.ssh/config":                                              "../dot/ssh/on-the-way",
		"/home/u/dot/ssh/on-the-way":                                       "real",
		"/home/u/.ssh/rc":                                                  "../dot/ssh/rc",
		"/home/u/.config/systemd/user/default.target.wants/x.service":      "/home/u/dot/x.service",
		"/home/u/.codex/config.toml":                                       "../dot/codex.toml",
		"/home/u/.config/helix/1/2/4":                                      "/home/u/dot/deep/4",
		"/home/u/.config/helix/1/2/3/4/5":                                  "/home/u/dot/deep/5",
		"/home/u/.local/bin/tool":                                          "../../dot/tool",
		"/home/u/.cache/pip/x":                                             "/home/u/dot/cached",
		"/home/u/.vscode/extensions/mine":                                  "/home/u/dot/ext",
		"/home/u/.config/zsh/node_modules/x":                               "/home/u/dot/modules/x",
		"/home/u/.config/Code/User/settings.json":                          "/home/u/dot/code.json",
		"/home/u/.gnupg/gpg-agent.conf":                                    "../dot/agent.conf",
		"/home/u/.config/kitty/loop":                                       "loop",
		"/home/u/.config/kitty/home":                                       "/home/u",
		"/home/u/.config/kitty/root":                                       "/",
		"/home/u/.config/kitty/all":                                        "../../dot",
		"/home/u/.config/kitty/same":                                       "kitty.conf",
		"/home/u/.config/fish/functions":                                   "../../.config/nvim",
		"/home/u/moved/fish/config.fish":                                   "../../dot/moved",
		"/home/u/.config/sublime-text/Packages/User/Preferences.sublime-x": "../../../../dot/none/new",
	}
	tree := maps.Clone(files)
	for link, target := range links {
		tree[link] = "-> " + target
	}
	const closed = "fish/config.fish nvim/lua/a.lua nvim/lua/new.lua ssh/on-the-way ssh/real ssh/rc x.service " +
		"codex.toml deep/4 code.json agent.conf none/new"
	const open = "plain fish/other nvim/init.lua ssh/other deep/5 tool cached ext/main.js moved modules/x new"
	for name, test := range map[string]struct{ project, grants, open string }{
		"the project": {"/home/u/dot", ``, open},
		"a grant":     {"/home/u/project", `"~/dot"`, open},
		// Where such a directory is granted itself, all its symlinks count.
		"home": {"/home/u/project", `"~"`, ""},
		"both": {"/home/u/dot", `"~"`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			of := func(tree map[string]string, more string) policy.Policy {
				block := fmt.Sprintf(`{"enabled": true, "additional_read_write_paths": [%s]%s}`, test.grants, more)
				s := snapshotOf(t, resolvetest.InMemory(tree), block, "")
				s.ProjectDir = test.project
				return s.Compile(document.KindTool).Policy
			}
			p := of(tree, "")
			mustDecide(t, &p, name, "/home/u/dot/", closed, test.open)
			without := of(files, "")
			mustDecide(t, &without, "control: no links", "/home/u/dot/", "", closed+" "+open)
			if test.open != "" {
				taken := of(tree, `, "protected_paths": ["!~/dot/codex.toml"]`)
				mustDecide(t, &taken, "an exception", "/home/u/dot/", "x.service", "codex.toml")
			}
			reason := ""
			for _, one := range p.Protected {
				if one.Path == "/home/u/dot/codex.toml" {
					reason = one.Origin.Reason
				}
			}
			if want := `"/home/u/.codex/config.toml" leads there`; reason != want {
				t.Errorf("the reason is %q, want %q", reason, want)
			}
		})
	}
}

// A project that such a symlink leads to cannot be protected as a whole: whoever
// starts a session in it is warned, and so is who grants it.
func TestLinked_AWholeProject(t *testing.T) {
	t.Parallel()
	for link, want := range map[string]string{
		"/home/u/.config/nvim":                   "your editor runs what it names",
		"/home/u/.vim/pack/mine/start/plugin":    "your editor runs what it names",
		"/home/u/.config/fish/conf.d":            "your shells run it when they start",
		"/home/u/.local/share/containers/plugin": "",
		"/home/u/src/plugin":                     "",
	} {
		tree := resolvetest.InMemory(map[string]string{
			"/tmp/": "", "/home/u/project/": "", "/home/u/code/plugin/src": "", link: "-> /home/u/code/plugin",
		})
		s := snapshotOf(t, tree, `{"enabled": true}`, "")
		s.ProjectDir = "/home/u/code/plugin"
		granted := snapshotOf(t, tree, `{"enabled": true, "additional_read_write_paths": ["~/code/plugin"]}`, "")
		for name, s := range map[string]*Snapshot{"the project": s, "a grant": granted} {
			compiled := s.Compile(document.KindTool)
			if !compiled.Policy.At("/home/u/code/plugin/src").Has(policy.Write) {
				t.Errorf("%s, %s: it cannot be written", link, name)
			}
			warned := slices.ContainsFunc(compiled.Warnings, func(text string) bool {
				return strings.Contains(text, "/home/u/code/plugin") && strings.Contains(text, want)
			})
			if want != "" && !warned || want == "" && len(compiled.Warnings) > 0 {
				t.Errorf("%s, %s: warned of %q, want %q", link, name, compiled.Warnings, want)
			}
		}
	}
}

// A directory of a project's table holds projects, too: Claude Code keeps its
// worktrees in one.
func TestLinked_AWorktreeInAProtectedDirectory(t *testing.T) {
	t.Parallel()
	const project = "/home/u/code/.claude/worktrees/fix"
	tree := resolvetest.InMemory(map[string]string{"/tmp/": "", project + "/src": ""})
	s := snapshotOf(t, tree, `{"enabled": true}`, "")
	s.ProjectDir = project
	if warnings := s.Compile(document.KindTool).Warnings; len(warnings) > 0 {
		t.Errorf("warned of %q", warnings)
	}
}

// A symlink to where everything may be, or to what programs make while they run,
// says nothing about what is there.
func TestLinked_LeavesOut(t *testing.T) {
	t.Parallel()
	for target, project := range map[string]string{
		"/home/u/Documents": "/home/u/Documents/p", "/home/u": "/home/u/p", "/data": "/data/p", "/": "/srv/x/p",
		"/run/x/y/p": "/run/x/y/p",
	} {
		tree := resolvetest.InMemory(map[string]string{
			"/tmp/": "", project + "/src": "", "/home/u/.config/kitty/link": "-> " + target,
		})
		s := snapshotOf(t, tree, `{"enabled": true}`, "")
		s.ProjectDir = project
		compiled := s.Compile(document.KindTool)
		if !compiled.Policy.At(project+"/src").Has(policy.Write) || len(compiled.Warnings) > 0 {
			t.Errorf("%s: %q", target, compiled.Warnings)
		}
		view := s.view()
		if linked := view.sensitive.Linked(view.View); len(linked) > 0 {
			t.Errorf("%s: %+v", target, linked)
		}
	}
}

// What a symlink in a directory of secrets leads to is one: hidden in a project and
// in grants, and never suggested.
func TestLinked_Secrets(t *testing.T) {
	t.Parallel()
	tree := map[string]string{"/tmp/": "", "/home/u/project/": ""}
	for link, target := range map[string]string{
		".ssh/id_ed25519": "key", ".ssh/config": "config", ".ssh/id.pub": "pub", ".aws/credentials": "aws",
		".gnupg/gpg-agent.conf": "agent", ".gnupg/private-keys-v1.d": "private", ".kube/config": "kube",
		".config/nvim/init.lua": "init", ".config/sops/age/keys.txt": "age", ".config/gh/config.yml": "gh.yml",
		".config/gh/hosts.yml": "hosts.yml", ".ssh/infra": "infra", ".config/google-chrome/Default": "profile",
		".aws/note": "open-note", ".aws/credentials.old": "open-aws", ".docker/config.json": "open-docker",
	} {
		tree["/home/u/"+link], tree["/home/u/dot/"+target] = "-> /home/u/dot/"+target, ""
	}
	for dir, file := range map[string]string{"private": "1.key", "infra": "id_rsa", "profile": "Cookies"} {
		delete(tree, "/home/u/dot/"+dir)
		tree["/home/u/dot/"+dir+"/"+file] = ""
	}
	// What others may read is a secret if it has the name of one, here or there.
	f := withModes(resolvetest.InMemory(tree), func(path string) fs.FileMode {
		if name := filepath.Base(path); strings.HasPrefix(name, "open-") || name == "kube" {
			return 0o644
		}
		return 0o600
	})
	for how, test := range map[string]struct{ project, settings string }{
		"the project":  {"/home/u/dot", `{"enabled": true}`},
		"a grant":      {"/home/u/project", `{"enabled": true, "additional_read_write_paths": ["~/dot"]}`},
		"a wide grant": {"/home/u/project", `{"enabled": true, "additional_read_only_paths": ["~"]}`},
	} {
		s := snapshotOf(t, f, test.settings, "")
		s.ProjectDir = test.project
		p := s.Compile(document.KindTool).Policy
		index := policy.NewIndex(&p)
		for name, hidden := range map[string]bool{
			"key": true, "aws": true, "kube": true, "private/1.key": true, "age": true, "hosts.yml": true,
			"infra/id_rsa": true, "open-aws": true, "open-docker": true, "open-note": false,
			"gh.yml": false, "profile/Cookies": false,
			"config": false, "pub": false, "agent": false, "init": false,
		} {
			if _, is := index.HiddenAt("/home/u/dot/" + name); is != hidden {
				t.Errorf("%s: %s is hidden: %t", how, name, is)
			}
			if what := s.Secrets()("/home/u/dot/" + name); (what != "") != hidden {
				t.Errorf("%s holds %q", name, what)
			}
		}
	}
}
