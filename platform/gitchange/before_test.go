package gitchange

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/gitconfig"
)

// What was there before stays, unless a session has added it.
func TestJudge_WhatWasThereStays(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ from, to, says string }{
		"another address":  {"https://example.com/a.git", "https://example.com/b.git", "go elsewhere"},
		"no address":       {"\turl = https://example.com/a.git\n", "", "go elsewhere"},
		"a second address": {"\tfetch", "\turl = https://example.com/b.git\n\tfetch", "go elsewhere"},
		"another branch":   {"merge = refs/heads/main", "merge = refs/heads/x", "go elsewhere"},
		"no remote":        {"\tremote = origin\n", "", "go elsewhere"},
		"no hooks":         {"\thooksPath = tools/hooks\n", "", "set before"},
		"other hooks": {
			"tools/hooks", ".husky", "\"core.hooksPath\": git would run the hooks in \".husky\"",
		},
		"no include":             {"[include]\n\tpath = ../more\n", "", "set before"},
		"an include, moved":      {"\tpath = ../more\n", "", "place"},
		"a working tree":         {"bare = false", "bare = true", "hooks elsewhere"},
		"no submodule's address": {"\turl = https://example.com/old.git\n", "", "go elsewhere"},
		"a branch's name, with another remote": {
			"[branch \"main\"]\n\tremote = origin", "[branch \"x\"]\n\tremote = .", "go elsewhere",
		},
		"a remote's name": {`[remote "origin"]`, `[remote "x"]`, "go elsewhere"},
	} {
		after := strings.Replace(ordinary, test.from, test.to, 1)
		if test.says == "place" {
			after = "[include]\n" + test.from + after
		}
		v := judged(t, ordinary, after)
		if !slices.ContainsFunc(v.Refused, func(r Refusal) bool { return strings.Contains(r.Line, test.says) }) {
			t.Errorf("%s: %+v", name, v.Refused)
		}
	}
	const more = "[remote \"n\"]\n\turl = https://a.b/c\n\tfetch = +refs/heads/*:refs/remotes/n/*\n" +
		"[branch \"t\"]\n\tremote = n\n\tmerge = refs/heads/x\n"
	ours := []string{
		"remote.n.url=https://a.b/c", "remote.n.fetch=+refs/heads/*:refs/remotes/n/*", "branch.t.remote=n",
		"branch.t.merge=refs/heads/x",
	}
	for name, after := range map[string]string{
		"removed":         ordinary,
		"another address": ordinary + strings.Replace(more, "a.b/c", "d.e", 1),
		"another branch":  ordinary + strings.Replace(more, "heads/x", "heads/y", 1),
		"renamed":         ordinary + strings.ReplaceAll(strings.ReplaceAll(more, `"n"`, `"m"`), "/n/", "/m/"),
	} {
		if name == "renamed" {
			after = strings.Replace(after, "remote = n", "remote = m", 1)
		}
		if v := judged(t, ordinary+more, after, ours...); len(v.Refused) > 0 {
			t.Errorf("%s: %+v", name, v.Refused)
		}
		if v := judged(t, ordinary+more, after); len(v.Refused) == 0 {
			t.Errorf("%s: accepted, though the user has added it", name)
		}
	}
}

// A branch that is made anew under the name of one that was renamed is that branch
// to "git push", and so is what a branch was renamed to.
func TestJudge_ABranchUnderAHeldName(t *testing.T) {
	t.Parallel()
	entries := func(text string) []gitconfig.Entry {
		list, ok := gitconfig.Parse(text, gitconfig.BlanksKept)
		if !ok {
			t.Fatalf("git would reject %q", text)
		}
		return list
	}
	const fork = "[remote \"fork\"]\n\turl = https://example.com/fork.git\n"
	renamed := strings.Replace(ordinary, `[branch "main"]`, `[branch "old"]`, 1)
	move := Judge(entries(ordinary), entries(renamed), Facts{})
	if len(move.Refused) > 0 || len(move.Moved) != 2 || len(move.Moved["main"]) != 2 || len(move.Moved["old"]) != 2 {
		t.Fatalf("control: a rename: %+v", move)
	}
	ours := func(e gitconfig.Entry) bool { // as after the rename, and "git remote add"
		return strings.HasPrefix(e.Key, "branch.old.") || strings.HasPrefix(e.Key, "branch.x.") ||
			strings.HasPrefix(e.Key, "remote.fork.")
	}
	held := func(branch string) ([]gitconfig.Entry, bool) {
		settings, is := move.Moved[branch]
		return settings, is
	}
	branch := func(name, remote, merge string) string {
		return fmt.Sprintf("[branch %q]\n\tremote = %s\n\tmerge = refs/heads/%s\n", name, remote, merge)
	}
	before, x := renamed+fork, branch("x", "fork", "main")
	for name, test := range map[string]struct {
		before, after string
		fine          bool
	}{
		"anew, to a fork":          {before, before + branch("main", "fork", "main"), false},
		"anew, to another branch":  {before, before + branch("main", "origin", "x"), false},
		"anew, with a rebase":      {before, before + "[branch \"main\"]\n\trebase = true\n", false},
		"anew, as it was":          {before, before + branch("main", "origin", "main"), true},
		"renamed to it":            {before + x, before + strings.Replace(x, `"x"`, `"main"`, 1), false},
		"renamed back":             {before, ordinary + fork, true},
		"renamed again":            {before, strings.Replace(before, `"old"`, `"older"`, 1), true},
		"the renamed one, changed": {before, strings.Replace(before, "remote = origin", "remote = fork", 1), false},
		"another":                  {before, before + branch("other", "fork", "main"), true},
		"what a session has added": {before + x, before + strings.Replace(x, "heads/main", "heads/y", 1), true},
		"both at once":             {ordinary + fork, renamed + fork + branch("main", "fork", "main"), false},
	} {
		v := Judge(entries(test.before), entries(test.after), Facts{Added: ours, Held: held})
		if (len(v.Refused) == 0) != test.fine {
			t.Errorf("%s: %+v", name, v.Refused)
		}
		if name == "renamed again" && len(v.Moved["older"]) != 2 {
			t.Errorf("%s: it is not held: %+v", name, v.Moved)
		}
		if name == "both at once" && !strings.Contains(v.Refused[0].Line, whyPush) {
			t.Errorf("%s: %+v", name, v.Refused)
		}
	}
}

// What is pushed, and what git deletes, stays as the user has set it.
func TestJudge_SetBeforeByTheUser(t *testing.T) {
	t.Parallel()
	before := ordinary + "[push]\n\tdefault = simple\n[gc]\n\tpruneExpire = never\n"
	for name, after := range map[string]string{
		"push.default":   strings.Replace(before, "simple", "matching", 1),
		"gc.pruneExpire": strings.Replace(before, "never", "now", 1),
		"removed":        ordinary + "[push]\n\tdefault = simple\n",
	} {
		if v := judged(t, before, after); len(v.Refused) != 1 || !strings.Contains(v.Refused[0].Line, whySet) {
			t.Errorf("%s: %+v", name, v.Refused)
		}
		if v := judged(t, before, after, "push.default=simple", "gc.pruneexpire=never"); len(v.Refused) > 0 {
			t.Errorf("control: %s that a session has set: %+v", name, v.Refused)
		}
	}
}
