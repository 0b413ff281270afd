package compile

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/document"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/resolve/resolvetest"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/settingstest"
)

// In each writable grant the user's settings decide as in the project.
func TestRoots_AreProtectedAsTheProjectIs(t *testing.T) {
	t.Parallel()
	tree := resolvetest.InMemory(map[string]string{
		"/home/u/project/": "", "/home/u/other/.claude": "-> .agents", "/home/u/other/.agents/": "",
		"/home/u/other/.git/HEAD": "", "/home/u/other/.git/hooks/pre-commit": "-> ../../tools/hook",
		"/home/u/other/tools/hook": "", "/home/u/.zshrc": "-> dotfiles/zshrc", "/home/u/dotfiles/zshrc": "",
		"/home/u/b/.vscode/": "", "/home/u/other/a.code-workspace": "", "/home/u/.bashrc.d/": "",
		"/home/u/other/link": "-> ../b",
		"/home/u/.bashrc":    "", "/tmp/": "", "/home/u/other/.vscode": "-> ../other",
		"/home/u/.claude/projects/": "", "/home/u/.local/bin/x": "", "/home/u/.config/zed/themes/": "",
	})
	for _, test := range []struct{ granted, protects, closed, open string }{
		{
			`"~/other"`, ``, "other/.envrc other/.claude other/.agents other/.git/hooks/x other/tools/hook " +
				"other/x.code-workspace", "other/src",
		},
		{`"~/other"`, `"!~/other/.agents"`, "other/.claude", "other/.agents"},
		{`"~/other", "~/b"`, `"!~/b/.vscode"`, "b/.envrc", "b/.vscode/x"},
		{`"~/other", "~/b"`, `"!~/other/link/.vscode"`, "b/.vscode/x", "b/src"},
		{`"~/other"`, `"!*"`, "", "other/.envrc other/.git/hooks/x other/.agents"},
		{`"~/other"`, `"~/other/src", "~/other/*.key"`, "other/src/x other/a.key", "other/a"},
		{`"~/dotfiles"`, ``, "dotfiles/zshrc", "dotfiles/vim"},
		{`"~"`, ``, ".bashrc .profile dotfiles/zshrc .local/bin/x other/.git/hooks/x", "other/.envrc src"},
		{`"~", "~/.bashrc"`, ``, ".profile", ".bashrc"},
		{
			`"~", "~/.claude/projects"`, ``,
			".claude/settings.json .claude/projects/.claude/x .claude/projects/.envrc .config/zed/settings.json",
			".claude/projects/x .config/zed/themes/x .config/x",
		},
		{
			`"~", "~/.claude/projects", "~/.local/bin/x", "~/.claude"`, ``,
			".local/bin/y", ".claude/settings.json .claude/projects/x .local/bin/x",
		},
		{
			`"~", "~/.claude/projects"`, `"~/.claude"`,
			".claude/projects/x", ".config/x .config/zed/themes/x",
		},
		{
			`"~", "~/.claude/projects", "~/.local/bin/x"`, `"~/.c*", "~/.local"`,
			".claude/projects/x .config/zed/themes/x .config/x .local/bin/x", "src",
		},
		{`"~", "~/.gitconfig"`, ``, ".bashrc", ".gitconfig"},
		{`"~", "~/other"`, `"!~/.profile"`, ".bashrc other/.envrc", ".profile"},
		// What a pattern covers stays as it is, whoever grants it.
		{`"~/other", "~/other/a.code-workspace"`, ``, "other/a.code-workspace other/b.code-workspace", "other/a"},
		// In a protected directory nobody makes what is not there.
		{`"~/b", "~/b/.vscode/missing"`, ``, "b/.vscode/missing b/.vscode/x", "b/x"},
		{`"~"`, ``, ".config/bash_completion .bashrc.d/x .zfunc/x", ".config/other"},
	} {
		block := fmt.Sprintf(`{"enabled": true, "additional_read_write_paths": [%s], "protected_paths": [%s]}`,
			test.granted, test.protects)
		p := snapshotOf(t, tree, block, "").Compile(document.KindTool).Policy
		mustDecide(t, &p, block, "/home/u/", test.closed, test.open)
	}
}

// mustDecide has sessions write none of the closed paths below a directory, and all
// of the open ones.
func mustDecide(t *testing.T, p *policy.Policy, settings, dir, closed, open string) {
	t.Helper()
	for path := range strings.FieldsSeq(closed) {
		if p.At(dir + path).Has(policy.Write) {
			t.Errorf("%s: %s can be written", settings, path)
		}
	}
	for path := range strings.FieldsSeq(open) {
		if !p.At(dir + path).Has(policy.Write) {
			t.Errorf("%s: %s cannot be written", settings, path)
		}
	}
}

// A project above the grants, which sessions cannot write, takes no protection away.
// One that they can write protects what is in it.
func TestRoots_BelowTheProject(t *testing.T) {
	t.Parallel()
	tree := resolvetest.InMemory(map[string]string{"/home/u/other/": "", "/home/u/.bashrc": "", "/tmp/": ""})
	for _, test := range []struct{ project, granted, closed string }{
		{"/", "~", ".bashrc .envrc .claude/x"},
		{"/", "~/other", "other/.envrc other/.claude/x"},
		{"/home", "~/other", ".bashrc"},
		{"/home/u", "~/other", ".envrc .bashrc"},
	} {
		s := snapshotOf(t, tree, `{"enabled": true, "additional_read_write_paths": ["`+test.granted+`"]}`, "")
		s.ProjectDir = test.project
		p := s.Compile(document.KindTool).Policy
		if !p.At("/home/u/other/x").Has(policy.Write) {
			t.Errorf("%s in %s is not granted", test.granted, test.project)
		}
		for path := range strings.FieldsSeq(test.closed) {
			if p.At("/home/u/" + path).Has(policy.Write) {
				t.Errorf("%s in %s: %s can be written", test.granted, test.project, path)
			}
		}
		if is := len(p.Roots) > 0; is != (test.project == "/") {
			t.Errorf("%s: %v", test.project, p.Roots)
		}
	}
}

// What an untrusted project has in it does not keep git from working in another
// grant.
func TestRoots_AnUntrustedProjectReachesNoOtherGrant(t *testing.T) {
	t.Parallel()
	tree := resolvetest.InMemory(map[string]string{
		"/home/u/project/.claude": "-> ../g/.git/objects", "/home/u/project/.envrc": "-> ../g/script",
		"/home/u/project/mine": "-> ../g/src", "/home/u/project/in": "-> build", "/home/u/project/build/": "",
		"/home/u/project/.vscode": "-> ../g/.git/hooks",
		"/home/u/g/.git/HEAD":     "", "/home/u/g/.git/objects/": "", "/home/u/g/.git/refs/": "",
		"/home/u/g/.git/hooks/": "",
		"/home/u/g/script":      "", "/home/u/g/src/": "",
		"/home/u/g/.cursor": "-> .git/agent", "/home/u/g/.git/agent/": "",
		"/tmp/": "",
	})
	const user = `{"enabled": true, "additional_read_write_paths": ["~/g"]}`
	for entries, open := range map[string]string{
		``: "g/.git/objects/x g/.git/refs/x g/src/x project/build",
		`"~/g/src", "mine", "~/g/.git/refs", "in", "../g/x", "~/g"`: "g/.git/objects/x g/.git/refs/x g/src/x g/x",
	} {
		s := snapshotOf(t, tree, user, `{"protected_paths": [`+entries+`]}`)
		e := s.evaluation(document.KindTool)
		for path := range strings.FieldsSeq(open) {
			if !e.policy.At("/home/u/" + path).Has(policy.Write) {
				t.Errorf("%s: %s cannot be written", entries, path)
			}
		}
		closed := "g/script g/.git/hooks/x g/.git/agent/x"
		if entries != "" {
			closed += " project/build/x"
		}
		for path := range strings.FieldsSeq(closed) {
			if e.policy.At("/home/u/" + path).Has(policy.Write) {
				t.Errorf("%s: %s can be written", entries, path)
			}
		}
		told := strings.Join(e.refusals, "\n")
		if !strings.Contains(told, `.claude" leads to "/home/u/g/.git/objects", in another git`) ||
			strings.Contains(told, "hooks") {
			t.Errorf("%s: %s", entries, told)
		}
		if entries != "" && !strings.Contains(said(s.Compile(document.KindTool), projectFile),
			`"~/g/src" has no effect unless you trust this project`) {
			t.Errorf("%s: not told", entries)
		}
	}
	s := trusting(t, tree, user, `{"protected_paths": ["~/g/src"]}`)
	if p := s.Compile(document.KindTool).Policy; p.At("/home/u/g/src/x").Has(policy.Write) {
		t.Error("a trusted project's entry has no effect in another grant")
	}
}

// What start-up files source is a start-up file, too, in any grant.
func TestRoots_WhatStartUpFilesSourceIsProtected(t *testing.T) {
	t.Parallel()
	tree := resolvetest.InMemory(map[string]string{
		"/home/u/project/": "", "/tmp/": "", "/home/u/dotfiles/bashrc": ". ~/.shell/one\n. /srv/shared/env\n",
		"/home/u/.bashrc":       "-> dotfiles/bashrc",
		"/home/u/.shell/one":    "[ -f ~/.shell/missing ] && . ~/.shell/missing\nsource $HOME/dotfiles/link",
		"/home/u/dotfiles/link": "-> real", "/home/u/dotfiles/real": "", "/home/u/dotfiles/other": "",
		"/srv/shared/env": "", "/srv/shared/tool": "",
	})
	for _, test := range []struct{ granted, protects, closed, open string }{
		{`"~"`, ``, "/home/u/.shell/one /home/u/.shell/missing /home/u/dotfiles/real", "/home/u/.shell/x /home/u/dotfiles/other"},
		{`"~/dotfiles"`, ``, "/home/u/dotfiles/real /home/u/dotfiles/bashrc", "/home/u/dotfiles/other"},
		{`"/srv/shared"`, ``, "/srv/shared/env", "/srv/shared/tool"},
		{
			`"~", "~/.shell/one"`, `"!~/dotfiles/real"`, "/home/u/.shell/missing",
			"/home/u/.shell/one /home/u/dotfiles/real",
		},
	} {
		block := fmt.Sprintf(`{"enabled": true, "additional_read_write_paths": [%s], "protected_paths": [%s]}`,
			test.granted, test.protects)
		p := snapshotOf(t, tree, block, "").Compile(document.KindTool).Policy
		mustDecide(t, &p, block, "", test.closed, test.open)
	}
}

// A project that holds start-up files protects them as a grant does: those that
// symlinks in the home directory lead to, and what others source.
func TestRoots_AProjectWithStartUpFiles(t *testing.T) {
	t.Parallel()
	tree := resolvetest.InMemory(map[string]string{
		"/home/u/dotfiles/zshrc": "", "/home/u/.zshrc": "-> dotfiles/zshrc", "/tmp/": "",
		"/home/u/.bashrc": ". ~/dotfiles/aliases; alias mine='sh ~/dotfiles/mine'\n" +
			"for f in ~/dotfiles/bash/*.sh ~/dotfiles/{path,prompt}; do . $f; done\n",
		"/home/u/dotfiles/aliases": "", "/home/u/dotfiles/bash/a.sh": "", "/home/u/dotfiles/bash/README": "",
		"/home/u/.config/nvim": "-> ../dotfiles/nvim", "/home/u/dotfiles/nvim/init.lua": "",
		"/home/u/.vim": "-> dotfiles/vim", "/home/u/dotfiles/vim": "-> vims/1", "/home/u/dotfiles/vims/1/vimrc": "",
		"/home/u/.profile":     ". ~/dotfiles/now/env\nfor f in ~/dotfiles/now/sh/*; do . $f; done\n",
		"/home/u/dotfiles/now": "-> v1", "/home/u/dotfiles/v1/env": "", "/home/u/dotfiles/v1/sh/a": "",
		"/home/u/.zlogin": "-> dotfiles/then/zlogin", "/home/u/dotfiles/then": "-> v2",
		"/home/u/dotfiles/v2/zlogin": "",
		"/home/u/.zprofile":          "-> dotfiles/zprofile", "/home/u/dotfiles/zprofile": "-> missing",
		"/home/u/.ssh/config":    "Include ~/dotfiles/ssh/* ~/dotfiles/now/work ~/dotfiles/hosts/*/config\n",
		"/home/u/dotfiles/ssh/a": "", "/home/u/dotfiles/hosts/one/config": "Include ~/dotfiles/'by host'\n",
		"/home/u/.kshrc": ". ~/dotfiles/venv/bin/activate; . ~/dotfiles/tool/bin/activate\n" +
			"cd ~/dotfiles && . rel\n",
		"/home/u/dotfiles/venv/pyvenv.cfg": "", "/home/u/dotfiles/venv/bin/activate": "",
		"/home/u/dotfiles/tool/bin/activate": "",
		"/home/u/.zshenv":                    "for f in ~/dotfiles/num/[0-9]*.sh; do . $f; done\n",
		"/home/u/dotfiles/num/1.sh":          "",
		"/home/u/.gitconfig": "[include] path = dotfiles/gitmore\n[core] hooksPath = ~/dotfiles/hooks\n" +
			"[init] templateDir = ~/dotfiles/template\n",
	})
	const closed = "template/hooks/pre-commit zshrc aliases bash/a.sh bash/new.sh path prompt nvim/init.lua nvim/new gitmore hooks/pre-commit " +
		"vim vims/1 then v2/zlogin now v1/env v1/sh/a v1/sh/new zprofile missing ssh/a ssh/new v1/work " +
		"hosts/one/config tool/bin/activate rel num/1.sh num/2.sh"
	for protects, test := range map[string]struct{ closed, open string }{
		``:                        {closed, "mine README bash/README new v1/new v2/new vims/2 venv/bin/activate num/README hosts/new/config"},
		`"!~/dotfiles/zshrc"`:     {strings.Replace(closed, "zshrc ", "", 1), "zshrc"},
		`"!~/dotfiles/bash/*.sh"`: {"aliases", "bash/a.sh bash/new.sh"},
		`"!~/dotfiles/nvim", "!~/dotfiles/aliases"`: {"zshrc", "nvim/init.lua aliases"},
	} {
		s := snapshotOf(t, tree, `{"enabled": true, "protected_paths": [`+protects+`]}`, "")
		s.ProjectDir = "/home/u/dotfiles"
		p := s.Compile(document.KindTool).Policy
		mustDecide(t, &p, protects, "/home/u/dotfiles/", test.closed, test.open)
	}
}

// A grant that is too large to find all repositories in it is reported once.
func TestRoots_ALargeGrantIsToldOnce(t *testing.T) {
	t.Parallel()
	files := map[string]string{"/home/u/project/": "", "/home/u/small/a/": "", "/tmp/": ""}
	for i := range 70 {
		files[fmt.Sprintf("/home/u/large/%d/", i)] = ""
	}
	tree := resolvetest.InMemory(files)
	for granted, want := range map[string]int{`"~/small"`: 0, `"~/large", "~/small"`: 1, `"~/large", "~"`: 2} {
		s := snapshotOf(t, tree, `{"enabled": true, "additional_read_write_paths": [`+granted+`]}`, "")
		c := s.Compile(document.KindTool)
		names := map[string]bool{}
		for _, note := range c.Notes() {
			if strings.Contains(note.Text, "it is too large") {
				names[note.Name] = true
			}
		}
		if len(names) != want {
			t.Errorf("%s: %v", granted, c.Notes())
		}
	}
}

// A crowded directory in one grant leaves the symlinks of the others as they are.
func TestRoots_ACrowdedGrantIsNoMatterToOthers(t *testing.T) {
	t.Parallel()
	files := map[string]string{
		"/home/u/project/": "", "/home/u/b/.vscode/tasks.json": "-> ../src/tasks.json", "/home/u/b/src/tasks.json": "",
		"/tmp/": "",
	}
	for i := range maxLinked + 1 {
		files[fmt.Sprintf("/home/u/a/.claude/%d", i)] = ""
	}
	s := snapshotOf(t, resolvetest.InMemory(files),
		`{"enabled": true, "additional_read_write_paths": ["~/a", "~/b"]}`, "")
	e := s.evaluation(document.KindTool)
	if e.policy.At("/home/u/b/src/tasks.json").Has(policy.Write) {
		t.Error("what a protected symlink leads to can be written")
	}
	if told := strings.Join(e.refusals, "\n"); !strings.Contains(told, `directories in "/home/u/a"`) {
		t.Errorf("%q", e.refusals)
	}
}

// A file that is granted by itself is reviewed if the review knows its name. Only
// what sessions have little reason to write is warned of.
func TestRoots_OneFileIsReviewed(t *testing.T) {
	t.Parallel()
	tree := resolvetest.InMemory(map[string]string{
		"/home/u/project/": "", "/home/u/o/Makefile": "", "/home/u/o/.envrc": "", "/home/u/o/text": "", "/tmp/": "",
	})
	for name, want := range map[string]struct{ reviewed, warned bool }{
		"Makefile": {reviewed: true}, ".envrc": {reviewed: true, warned: true}, "text": {},
	} {
		s := snapshotOf(t, tree, `{"enabled": true, "additional_read_write_paths": ["~/o/`+name+`"]}`, "")
		e := s.evaluation(document.KindTool)
		warned := slices.ContainsFunc(e.refusals, func(text string) bool {
			return strings.Contains(text, "sessions may write")
		})
		reviewed := len(e.policy.Roots) == 1 && e.policy.Roots[0].Acts != ""
		if reviewed != want.reviewed || warned != want.warned {
			t.Errorf("%s: %v, %q", name, e.policy.Roots, e.refusals)
		}
	}
}

// The state of an agent is the session's own, or stays as it is: its set does not
// open the real one below a wider grant.
func TestRoots_ASetOpensNoStateOfAnAgent(t *testing.T) {
	t.Parallel()
	tree := resolvetest.InMemory(map[string]string{
		"/home/u/project/": "", "/home/u/.claude/projects/": "", "/home/u/.claude/settings.json": "", "/tmp/": "",
	})
	for granted, want := range map[string]struct{ private, settings, projects bool }{
		`"~"`:                       {private: true, settings: true, projects: true},
		`"~", "~/.claude/projects"`: {projects: true},
		`"~", "~/.claude"`:          {settings: true, projects: true},
	} {
		block := `{"enabled": true, "toolchains": ["claude"], "additional_read_write_paths": [` + granted + `]}`
		p := snapshotOf(t, tree, block, "").Compile(document.KindTool).Policy
		writes := func(path string) bool { return p.At("/home/u/.claude/" + path).Has(policy.Write) }
		if got := len(p.Caches) == 1; got != want.private || writes("settings.json") != want.settings ||
			writes("projects/x") != want.projects {
			t.Errorf("%s: private %t, settings %t, projects %t", block, got, writes("settings.json"),
				writes("projects/x"))
		}
	}
}

// A grant reopens nothing that an organisation protects, and a project's file takes
// the protection of no path away by a grant of it.
func TestRoots_WhatTheUserDoesNotDecideStaysProtected(t *testing.T) {
	t.Parallel()
	tree := resolvetest.InMemory(map[string]string{
		"/home/u/project/": "", "/home/u/.claude/projects/x/": "", "/home/u/.config/zed/themes/": "",
		"/home/u/.gitconfig": "", "/tmp/": "",
	})
	const user = `{"enabled": true, "additional_read_write_paths": ["~", "~/.claude/projects"]}`
	writes := func(s *Snapshot, path string) bool {
		p := s.Compile(document.KindTool).Policy
		return p.At("/home/u/" + path).Has(policy.Write)
	}
	if s := snapshotOf(t, tree, user, ""); !writes(s, ".claude/projects/x") || !writes(s, ".config/zed/themes") {
		t.Error("the control: the grant does not open what it names")
	}
	for _, entry := range []string{".claude", ".claude/projects", ".c*", ".config"} {
		entry = "/home/u/" + entry
		s := snapshotOf(t, tree, user, "")
		s.UserStates = append(s.UserStates, settingstest.Managed(t, "/etc/sandbox-sidecar/settings.json", `{}`,
			`{"protected_paths": ["`+entry+`"]}`))
		for _, path := range []string{".claude/projects/x", ".config/zed/themes"} {
			covered := policy.Protected{Path: entry, Pattern: true}
			if covered.Covers("/home/u/"+path) && writes(s, path) {
				t.Errorf("%s can be written, and the organisation protects %s", path, entry)
			}
		}
	}
	for _, path := range []string{".claude", ".claude/projects", ".gitconfig", ".claude/settings.json"} {
		s := snapshotOf(t, tree, `{"enabled": true, "additional_read_write_paths": ["~"]}`,
			`{"additional_read_write_paths": ["~/`+path+`"]}`)
		if writes(s, path) {
			t.Errorf("a project's file opens %s", path)
		}
	}
}

// A pattern guards what is not there. What is there needs an entry of its own to be
// mounted, also if a grant names just that file.
func TestRoots_WhatAPatternCoversHasAnEntry(t *testing.T) {
	t.Parallel()
	tree := resolvetest.InMemory(map[string]string{
		"/home/u/project/": "", "/home/u/other/a.code-workspace": "", "/tmp/": "",
	})
	for _, more := range []string{"", `, "~/other/a.code-workspace"`} {
		block := `{"enabled": true, "additional_read_write_paths": ["~/other"` + more + `]}`
		p := snapshotOf(t, tree, block, "").Compile(document.KindTool).Policy
		if !slices.ContainsFunc(p.Protected, func(one policy.Protected) bool {
			return one.Path == "/home/u/other/a.code-workspace" && !one.Pattern && !one.Creatable
		}) {
			t.Errorf("%s: the file is not mounted", block)
		}
	}
}

// A trusted project's file takes no protection away in a grant that it leaves.
func TestRoots_ATrustedFileTakesNoProtectionAway(t *testing.T) {
	t.Parallel()
	tree := resolvetest.InMemory(map[string]string{
		"/home/u/project/": "", "/home/u/kept/x": "", "/home/u/.zshrc": "-> kept/zshrc", "/home/u/kept/zshrc": "",
		"/tmp/": "",
	})
	user := `{"enabled": true, "additional_read_write_paths": ["~"], "system_paths": {"read_write": ["~/kept"]}}`
	s := trusting(t, tree, user, `{"additional_read_write_paths": []}`)
	view := s.view()
	alone := s.run(view, s.ProjectDir, asIgnored, document.KindTool, nil)
	believed := s.run(view, s.ProjectDir, asTrusted, document.KindTool, alone)
	for path, want := range map[string]bool{"x": true, "zshrc": false} {
		if got := believed.policy.At("/home/u/kept/" + path).Has(policy.Write); got != want {
			t.Errorf("%s can be written: %t", path, got)
		}
	}
}

// What cannot be protected is told.
func TestRoots_WhatIsNotProtectedIsTold(t *testing.T) {
	t.Parallel()
	files := map[string]string{
		"/home/u/project/.vscode": "-> ../other", "/home/u/other/": "", "/home/u/.bashrc": "", "/tmp/": "",
	}
	many := []string{}
	for i := range maxRoots + 2 {
		files[fmt.Sprintf("/home/u/many/%d/", i)] = ""
		many = append(many, fmt.Sprintf(`"~/many/%d"`, i))
	}
	tree := resolvetest.InMemory(files)
	for granted, want := range map[string]string{
		`"~/other"`:              `"/home/u/project/.vscode" leads to "/home/u/other"`,
		`"~/.bashrc"`:            `sessions may write "/home/u/.bashrc", by additional_read_write_paths`,
		strings.Join(many, ", "): `names in "/home/u/many/32" and 1 more are not protected`,
		`"/tmp", "/dev"`:         "",
	} {
		block := `{"enabled": true, "additional_read_write_paths": [` + granted + `]}`
		e := snapshotOf(t, tree, block, "").evaluation(document.KindTool)
		said := slices.ContainsFunc(e.refusals, func(text string) bool { return strings.Contains(text, want) })
		if want == "" && len(e.policy.Roots) > 0 || want != "" && !said {
			t.Errorf("%s: %q, %v", granted, e.refusals, e.policy.Roots)
		}
	}
}
