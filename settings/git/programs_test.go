package git

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/gitchange"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/gitconfig"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/resolve"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/resolve/resolvetest"
)

// Words of a command count if they lead to a file, or could; other variables
// and directories do not.
func TestFind_ListsPrograms(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ config, want string }{
		{"[filter \"x\"]\n\tclean = tools/run %f\n", "tools/run: filter.x.clean"},
		{"[filter \"x\"]\n\tsmudge = sh -c 'exec \"./tools/run\"'\n", "tools/run: filter.x.smudge"},
		{"[filter \"x\"]\n\tprocess = run\n", "run: filter.x.process"},
		{"[filter \"x\"]\n\tprocess = git-lfs filter-process\n", ""},
		{"[core]\n\tfsmonitor = tools/missing\n", "tools/missing: core.fsmonitor"},
		{"[core]\n\tsshCommand = ssh -F tools\n", ""},
		{"[core]\n\tsshCommand = /home/u/project/tools/run\n", "tools/run: core.sshcommand"},
		{"[alias]\n\ta = !sh $(git rev-parse --show-toplevel)/tools/run\n\tb = log tools/run\n", "tools/run: alias.a"},
		{"[credential \"https://x\"]\n\thelper = ~/project/tools/run\n", "tools/run: credential.https://x.helper"},
		{"[core]\n\teditor = \\\"$HOME/project/tools/run\\\" --wait\n", "tools/run: core.editor"},
		{"[core]\n\teditor = \\\"${HOME}\\\"/project/tools/run\n", "tools/run: core.editor"},
		{"[hook \"x\"]\n\tcommand = tools/run\n", "tools/run: hook.x.command"},
		{"[alias \"x\"]\n\tcommand = tools/run\n", "tools/run: alias.x.command"},
		{"[alias]\n\tcommand = tools/run\n[submodule \"x\"]\n\tcommand = tools/run\n", ""},
		{"[lfs \"extension.x\"]\n\tclean = tools/run\n", "tools/run: lfs.extension.x.clean"},
		{"[alias]\n\ta = !cd ~/project/tools && ./run\n", "tools/run: alias.a"},
		{"[user]\n\tname = tools/run\n[remote \"o\"]\n\turl = tools/run\n", ""},
		{"[remote \"o\"]\n\tuploadpack = link/run\n", "link: remote.o.uploadpack, tools/run: remote.o.uploadpack"},
	} {
		tree := with(repository(gitProject+"/.git"), map[string]string{
			gitProject + "/.git/config": test.config, gitProject + "/tools/run": "", gitProject + "/run": "",
			gitProject + "/link": "-> tools",
		})
		FS := resolvetest.InMemory(tree)
		found := Find(resolve.NewView(FS), resolve.Host{Platform: "linux", Home: "/home/u"}, gitProject, nil)
		var list []string
		for _, path := range slices.Sorted(maps.Keys(found.Programs)) {
			list = append(list, strings.TrimPrefix(path, gitProject+"/")+": "+found.Programs[path])
		}
		if got := strings.Join(list, ", "); got != test.want {
			t.Errorf("%q: %s\nwant %s", test.config, got, test.want)
		}
	}
}

// What git runs when a setting changes is run when its program changes, too.
func TestFind_KnowsEverySettingThatGitRuns(t *testing.T) {
	t.Parallel()
	for _, key := range gitchange.Programs() {
		key := strings.ToLower(key)
		section, name, _ := strings.Cut(key, ".")
		name = name[strings.LastIndexByte(name, '.')+1:]
		names := []string{name}
		if name == "*" {
			if names = programKeys[section]; len(names) == 0 {
				names = []string{"any"}
			}
		}
		group := strings.Repeat(".group", min(1, strings.Count(key, ".")-1))
		known := slices.ContainsFunc(names, func(name string) bool {
			return namesProgram(gitconfig.Entry{Key: section + group + "." + name, Value: "!tools/run"})
		})
		if !known {
			t.Errorf("git would run the value of %s, and changes of that program are not reviewed", key)
		}
	}
	if n := len(gitchange.Programs()); n < 25 {
		t.Errorf("%d settings: this test finds nothing", n)
	}
}

// A configuration full of commands is read up to the bound.
func TestFind_BoundsPrograms(t *testing.T) {
	t.Parallel()
	config := "[filter \"x\"]\n\tclean = " + strings.Repeat("a/b ", 10*maxPrograms) + "tools/run\n"
	for i := range 10 * maxPrograms {
		config += fmt.Sprintf("\tsmudge = c/%d\n", i)
	}
	tree := with(repository(gitProject+"/.git"), map[string]string{
		gitProject + "/.git/config": config, "/home/u/.gitconfig": "[core]\n\teditor = tools/run\n",
	})
	view := resolve.NewView(resolvetest.InMemory(tree))
	found := Find(view, resolve.Host{Platform: "linux", Home: "/home/u"}, gitProject, nil)
	if len(found.Programs) != maxPrograms+1 || found.Programs[gitProject+"/tools/run"] != "core.editor" {
		t.Errorf("%d: %v", len(found.Programs), found.Programs)
	}
}
