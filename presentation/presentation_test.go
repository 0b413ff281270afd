package presentation

import (
	"strings"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/settings/compile"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/explain"
	"github.com/sandbox-sidecar/sandbox-sidecar/spawn"
)

func denial(access, target, process string, count int) (d spawn.Denial) {
	setText(&d.Access, access)
	d.Target, d.Process, d.Count = target, process, count
	return d
}

func setText[T ~string](field *T, value string) { *field = T(value) }

func TestMessages(t *testing.T) {
	t.Parallel()
	add := explain.Suggestion{Key: "additional_read_only_paths", Value: "~/data"}
	led := denial("connect", "10.0.0.7:80", "curl", 1).Denial
	led.Name = "a\nb.example"
	key := denial("sign", "SHA256:x", "", 1)
	key.Name = `"me \"", to log in as "git"`
	long := "/" + strings.Repeat("x", 200)
	for _, test := range []struct{ got, want string }{
		{
			denialMessage(denial("read", "/home/u/data/x", "cat", 3), add),
			`The sandbox refused to let "cat" read "/home/u/data/x" (3 times). ` +
				`To allow it: add "~/data" to "additional_read_only_paths".`,
		},
		{
			denialMessage(denial("connect", "192.0.2.1:443", "", 1), explain.Suggestion{}),
			`The sandbox refused to let a program connect to "192.0.2.1:443".`,
		},
		{
			denialMessage(spawn.Denial{Denial: led}, explain.Suggestion{}),
			`The sandbox refused to let "curl" connect to "10.0.0.7:80" (the address of "a\nb.example").`,
		},
		{
			questionMessage(spawn.Denial{Denial: led}),
			`"curl" wants to connect to "10.0.0.7:80" (the address of "a\nb.example"), and waits for your answer.`,
		},
		{DenialLine(spawn.Denial{Denial: led}), `connect "10.0.0.7:80" (the address of "a\nb.example") by "curl"`},
		{
			denialMessage(denial("execute", "/"+strings.Repeat("x", 90), "sh", 1), add),
			`The sandbox refused to let "sh" run "/` + strings.Repeat("x", 90) + `".`,
		},
		{
			denialMessage(denial("read", "/a\n\x1b[2J\u202e](command:x)", "c\"\nat", 1), explain.Suggestion{}),
			`The sandbox refused to let "c\"\nat" read "/a\n\x1b[2J\u202e]\x28command:x)".`,
		},
		{DenialLine(denial("read", "/a\nb", "cat", 2)), `read "/a\nb" by "cat", 2 times`},
		{Denial("", denial("read", "/a\nb", "cat", 2), add).Line, `read "/a\nb" by "cat"`},
		{
			Denial("", denial("read", long, "", 1), add).Suggestion.Instruction,
			`add "~/data" to "additional_read_only_paths"`,
		},
		{
			Explanation(explain.Answer{Key: "additional_read_only_paths", Value: long}).Instruction,
			`add "` + long + `" to "additional_read_only_paths"`,
		},
		{Explanation(explain.Answer{Key: "additional_read_only_paths", Allowed: true}).Instruction, ""},
		{questionMessage(denial("create", "/a\nb", "cat", 1)), `"cat" wants to create "/a\nb", ` +
			`and waits for your answer.`},
		{questionMessage(denial("write", "/a", "", 1)), `A program wants to write "/a", and waits for your answer.`},
		{
			questionMessage(key),
			`A program wants to use the key "SHA256:x" ("me \"", to log in as "git"), and waits for your answer.`,
		},
		{DenialLine(key), `use the key "SHA256:x" ("me \"", to log in as "git")`},
		{
			alarmMessage(spawn.Alarm{Kind: "protected_write", Path: "/p\n"}),
			`The sandbox refused to change the protected path "/p\n".`,
		},
		{
			alarmMessage(spawn.Alarm{Kind: "protected_stored", Path: "/p\n", Why: "git merge puts it in place: \n"}),
			`Since a sandboxed session began git has new content for "/p\n": git merge puts it in place: \n. ` +
				`Check it before you run git outside.`,
		},
		{
			FindingLine(spawn.Finding{Path: "/p\n/x", How: "created", Why: "git runs it"}),
			`"/p\n/x" was created: git runs it`,
		},
		{
			FindingLine(spawn.Finding{
				Path: "/p/Makefile", How: "changed", Why: "tools run them", Group: "build files",
				Others: []string{"/p/a\n", "/p/b", "/p/c"}, Total: 9,
			}),
			`9 build files were changed: "/p/Makefile", "/p/a\n", "/p/b" and 6 more (tools run them)`,
		},
		{projectMessage(compile.Project{
			File: "/p\n", Exists: true, Problem: "bad\n",
		}), `"/p\n" cannot be trusted: bad\n.`},
		{explain.Suggestion{Key: "allow_network", Value: "true"}.Instruction(), `set "allow_network" to true`},
		{
			compile.Ask{Key: "toolchains", Value: "x\n", Line: 3, Opens: "nothing"}.Message(),
			`line 3: toolchains "x\n": nothing`,
		},
	} {
		if test.got != test.want {
			t.Errorf("got  %s\nwant %s", test.got, test.want)
		}
	}
}

// A refused "git worktree add" is no half-done merge: what the user changed stays
// where it is, and git may have made the branch.
func TestWayOn_OfAWorktree(t *testing.T) {
	t.Parallel()
	const tree, file = "/home/u/project/.claude/worktrees/y", "/home/u/project/.vscode/settings.json"
	for _, test := range []struct {
		process, target, worktree, want string
	}{
		{"git", tree, "place", worktreeElsewhere},
		{"git", "/home/u/project/.claude", "place", worktreeElsewhere},
		{"git", "/home/u/project/tree/.envrc", "content", worktreeOutside},
		{"git", "/home/u/project/.git/worktrees/y", "content", worktreeOutside},
		{"git", tree, "", agentsWorktree},
		{"claude", "/home/u/project/.claude/worktrees", "", agentsWorktree},
		{"claude", "/home/u/project/.claude/worktrees2", "", ""},
		{"git", "/home/u/all/.bare/worktrees/y", "", halfWay},
		{"git", file, "", halfWay},
		{"git", "/home/u/project/.git/worktrees/y", "", ""},
		{"vim", file, "", ""},
	} {
		d := denial("create", test.target, test.process, 1)
		setText(&d.Worktree, test.worktree)
		if got := WayOn(d); got != test.want {
			t.Errorf("%+v: %q", test, got)
		}
	}
	for _, hint := range []string{worktreeElsewhere, worktreeOutside, agentsWorktree, halfWay} {
		if len(hint) > 100 {
			t.Errorf("%d characters: %s", len(hint), hint)
		}
	}
}
