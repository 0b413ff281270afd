package gitchange

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/sandbox-sidecar/sandbox-sidecar/display"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/gitconfig"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// ordinary is what "git clone" writes, with a submodule and things that run.
const ordinary = `[core]
	repositoryformatversion = 0
	filemode = true
	bare = false
	logallrefupdates = true
	hooksPath = tools/hooks
[remote "origin"]
	url = https://example.com/a.git
	fetch = +refs/heads/*:refs/remotes/origin/*
[branch "main"]
	remote = origin
	merge = refs/heads/main
[submodule "old"]
	active = true
	url = https://example.com/old.git
[include]
	path = ../more
[user]
	name = Her
`

// judged compares the ordinary file with another. The only local repository is
// /srv/a.git, and ours are what a session has added before.
func judged(t *testing.T, before, after string, ours ...string) Verdict {
	t.Helper()
	read := func(text string) []gitconfig.Entry {
		entries, ok := gitconfig.Parse(text, gitconfig.BlanksKept)
		if !ok {
			t.Fatalf("git would reject %q", text)
		}
		return entries
	}
	return Judge(read(before), read(after), Facts{
		Added: func(e gitconfig.Entry) bool { return slices.Contains(ours, e.Key+"="+e.Value) },
		Unwritable: func(path string) bool {
			return path == "/srv/a.git"
		},
	})
}

func TestJudge_AcceptsWhatIsHarmless(t *testing.T) {
	t.Parallel()
	for _, added := range []string{
		"[branch \"t\"]\n\tremote = origin", "[branch \"t\"]\n\tremote = origin\n\tmerge = refs/heads/main",
		"[branch \"t\"]\n\tremote = .\n\tmerge = refs/heads/main\n\trebase = true",
		"[branch \"a/b\"]\n\tdescription = some text\\nin two lines", "[branch \"main\"]\n\trebase = merges",
		"[remote \"new\"]\n\turl = https://user@example.com:8080/b.git",
		"[remote \"new\"]\n\turl = https://[::1]/b.git\n\tfetch = " +
			"+refs/heads/*:refs/remotes/new/*\n\tprune\n\ttagOpt = --no-tags",
		"[remote \"new\"]\n\turl = ssh://git@example.com:22/~x/b.git", "[remote \"new\"]\n\turl = git://example.com/b",
		"[remote \"new\"]\n\turl = git@example.com:b.git", "[remote \"new\"]\n\turl = host:b",
		"[remote \"new\"]\n\turl = /srv/a.git", "[remote \"new\"]\n\turl = file:///srv/a.git",
		"[remote \"n\"]\n\turl = host:b\n\tfetch = +refs/heads/x:refs/remotes/n/x\n[branch \"t\"]\n\tremote = n",
		"[user]\n\tname = Me\n\temail = me@example.com", "[USER]\nEMAIL=me@example.com",
		"[pull]\nrebase = merges\nff = only",
		"[push]\ndefault = current\nautoSetupRemote\nfollowTags = off", "[init]\ndefaultBranch = main",
		"[gc]\nauto = 0\nautoDetach = false\npruneExpire = 2.weeks.ago\nreflogExpire = " +
			"never\nreflogExpireUnreachable = 30 days",
		"[submodule \"s/x\"]\n\tactive = true\n\turl = https://example.com/s.git",
		"[core]\nignoreCase = true\nprecomposeUnicode = false\nlogAllRefUpdates = always\nfileMode = 0",
		"[lfs]\nrepositoryformatversion = 0\n[lfs \"https://example.com/a.git/info/lfs\"]\nlocksverify = true",
		"[filter \"lfs\"]\nclean = git-lfs clean -- %f\nsmudge = git-lfs smudge -- %f\nprocess = git-lfs " +
			"filter-process\nrequired = true",
		"# a comment\n; and another", "",
	} {
		if v := judged(t, ordinary, ordinary+added+"\n"); len(v.Refused) > 0 {
			t.Errorf("%s: %+v", added, v.Refused)
		}
		if v := judged(t, "", added+"\n[remote \"origin\"]\n\turl = host:x\n"); len(v.Refused) > 0 {
			t.Errorf("%s: in an empty file: %+v", added, v.Refused)
		}
	}
	for name, change := range map[string]struct{ from, to string }{
		"another name": {"name = Her", "name = Him"},
		"no name":      {"\tname = Her\n", ""},
		"another spelling": {
			"[core]\n\trepositoryformatversion = 0", "[CORE]\n\trepositoryFormatVersion =\\\n \"0\" # x",
		},
		"a branch's name":            {`[branch "main"]`, `[branch "trunk"]`},
		"a branch's name, at an end": {"[branch \"main\"]\n\tremote = origin\n\tmerge = refs/heads/main\n", ""},
		"a module that is not active": {
			"active = true", "active = false",
		},
	} {
		after := strings.Replace(ordinary, change.from, change.to, 1)
		if name == "a branch's name, at an end" {
			after += strings.Replace(change.from, `"main"`, `"x/y"`, 1)
		}
		if v := judged(t, ordinary, after); len(v.Refused) > 0 || after == ordinary {
			t.Errorf("%s: %+v", name, v.Refused)
		}
	}
}

// dangerous are settings that make git run or read something, with values that
// would, and what the refusal has to say.
var dangerous = []struct{ section, group, name, value, says string }{
	{"core", "", "hooksPath", "x/hooks", "run the hooks in \"x/hooks\""},
	{"core", "", "fsmonitor", "./x", "run \"./x\""},
	{"core", "", "sshCommand", "./x", "run \"./x\""},
	{"core", "", "editor", "./x", "run \"./x\""},
	{"core", "", "pager", "./x", "run \"./x\""},
	{"core", "", "askPass", "./x", "run \"./x\""},
	{"core", "", "gitProxy", "./x", "run \"./x\""},
	{"core", "", "worktree", "/", "work in \"/\""},
	{"core", "", "attributesFile", "x", "filters from \"x\""},
	{"core", "", "alternateRefsCommand", "./x", "run \"./x\""},
	{"core", "", "bare", "true", "hooks elsewhere"},
	{"core", "", "excludesFile", "x", "ignore what \"x\""},
	{"core", "", "repositoryformatversion", "1", "harmless"},
	{"core", "", "autocrlf", "true", "harmless"},
	{"alias", "", "st", "!./x", "run \"!./x\""},
	{"alias", "st", "command", "!./x", "run \"!./x\""},
	{"include", "", "path", "x", "settings from \"x\""},
	{"includeIf", "gitdir:/", "path", "x", "settings from \"x\""},
	{"credential", "", "helper", "!./x", "ask \"!./x\""},
	{"credential", "https://a.b", "helper", "!./x", "ask \"!./x\""},
	{"filter", "x", "clean", "./x", "run \"./x\""},
	{"filter", "x", "smudge", "./x", "run \"./x\""},
	{"filter", "x", "process", "./x", "run \"./x\""},
	{"filter", "lfs", "clean", "./x", "run \"./x\""},
	{"filter", "lfs", "process", "git-lfs filter-process; ./x", "run \"git-lfs"},
	{"filter", "LFS", "clean", "git-lfs clean -- %f", "run \"git-lfs"},
	{"diff", "", "external", "./x", "run \"./x\""},
	{"diff", "x", "command", "./x", "run \"./x\""},
	{"diff", "x", "textconv", "./x", "run \"./x\""},
	{"difftool", "x", "cmd", "./x", "run \"./x\""},
	{"merge", "x", "driver", "./x", "run \"./x\""},
	{"mergetool", "x", "cmd", "./x", "run \"./x\""},
	{"url", "ext::./x", "insteadOf", "https://", "other addresses"},
	{"url", "ext::./x", "pushInsteadOf", "https://", "other addresses"},
	{"protocol", "", "allow", "always", "other addresses"},
	{"protocol", "ext", "allow", "always", "other addresses"},
	{"submodule", "s", "update", "!./x", "run \"!./x\""},
	{"submodule", "", "recurse", "true", "harmless"},
	{"submodule", "../x", "url", "https://a.b/c", "\"../x\" as something else"},
	{"gpg", "", "program", "./x", "run \"./x\""},
	{"gpg", "ssh", "program", "./x", "run \"./x\""},
	{"gpg", "ssh", "defaultKeyCommand", "./x", "run \"./x\""},
	{"sequence", "", "editor", "./x", "run \"./x\""},
	{"uploadpack", "", "packObjectsHook", "./x", "run \"./x\""},
	{"remote", "new", "uploadpack", "./x", "run \"./x\""},
	{"remote", "new", "receivepack", "./x", "run \"./x\""},
	{"remote", "new", "proxy", "http://a", "connect through \"http"},
	{"remote", "new", "vcs", "x", "helper for \"x\""},
	{"remote", "origin", "vcs", "x", "helper for \"x\""},
	{"remote", "origin", "pushurl", "https://a.b", "go elsewhere"},
	{"remote", "", "pushDefault", "x", "go elsewhere"},
	{"remote", "new", "mirror", "true", "every branch"},
	{"branch", "main", "pushRemote", "x", "go elsewhere"},
	{"remote", "new", "url", "ext::sh -c ./x", "not https"},
	{"remote", "new", "url", "ext::./x", "not https"},
	{"remote", "new", "url", "-oProxyCommand=./x:a", "not https"},
	{"remote", "new", "url", "ssh://-oProxyCommand=./x/a", "not https"},
	{"remote", "new", "url", "ssh://%2doProxyCommand=x/a", "not https"},
	{"remote", "new", "url", "git@-oProxyCommand=x:a", "not https"},
	{"remote", "new", "url", "host:-x", "not https"},
	{"remote", "new", "url", "ssh://host/-x", "not https"},
	{"remote", "new", "url", "ssh://host/%2dx", "not https"},
	{"remote", "new", "url", "../x", "not https"},
	{"remote", "new", "url", "~/x", "not https"},
	{"remote", "new", "url", "http://a.b/c", "not https"},
	{"remote", "new", "url", "file://host/srv/a.git", "not https"},
	{"remote", "new", "url", "/srv/../home", "not https"},
	{"remote", "new", "url", "/home/x", "could write to \"/home/x\""},
	{"remote", "new", "url", "file:///home/x", "could write to"},
	{"remote", "new", "url", "https://a.b/%0ac", "not https"},
	{"remote", "new", "url", "https://a\\nb/c", "not https"},
	{"remote", "new", "url", "", "not https"},
	{"remote", "https://example.com/a.git", "url", "https://evil.com", "as something else"},
	{"remote", "vendor/lib", "url", "https://evil.com", "as something else"},
	{"remote", "-x", "url", "https://a.b", "as something else"},
	{"remote", "new", "fetch", "+refs/*:refs/*", "not accepted"},
	{"remote", "new", "fetch", "+refs/heads/*:refs/remotes/origin/*", "not accepted"},
	{"remote", "new", "fetch", "+refs/heads/*:refs/heads/*", "not accepted"},
	{"remote", "new", "tagOpt", "--upload-pack=./x", "not accepted"},
	{"remote", "origin", "fetch", "+refs/heads/x:refs/remotes/origin/x", "set before"},
	{"branch", "t", "remote", "https://evil.com", "no remote \"https"},
	{"branch", "t", "remote", "ext::./x", "no remote \"ext::./x\""},
	{"branch", "t", "remote", "other", "no remote"},
	{"branch", "t", "merge", "main", "not accepted"},
	{"branch", "main", "merge", "refs/heads/x", "go elsewhere"},
	{"branch", "main", "remote", "other", "go elsewhere"},
	{"branch", "t", "mergeOptions", "-s x", "harmless"},
	{"branch", "-t", "remote", "origin", "as something else"},
	{"branch", "t", "rebase", "x", "not accepted"},
	{"branch", "t", "description", "\\b", "not accepted"},
	{"submodule", "old", "url", "https://evil.com", "go elsewhere"},
	{"submodule", "s", "url", "ext::x", "not https"},
	{"extensions", "", "worktreeConfig", "true", "reads the repository"},
	{"extensions", "", "partialClone", "x", "reads the repository"},
	{"gc", "", "recentObjectsHook", "./x", "run \"./x\""},
	{"gc", "refs/x", "reflogExpire", "now", "harmless"},
	{"gc", "", "pruneExpire", "--x", "not accepted"},
	{"gc", "", "auto", "1k", "not accepted"},
	{"lfs", "extension.x", "clean", "./x", "git-lfs would run \"./x\""},
	{"lfs", "customtransfer.x", "path", "./x", "run or connect to \"./x\""},
	{"lfs", "", "url", "http://x", "connect to"},
	{"init", "", "templateDir", "x", "hooks from \"x\""},
	{"http", "", "proxy", "x", "how git connects"},
	{"http", "https://x", "sslVerify", "false", "how git connects"},
	{"hook", "x", "command", "./x", "run \"./x\""},
	{"interactive", "", "diffFilter", "./x", "run \"./x\""},
	{"pager", "", "log", "./x", "run \"./x\""},
	{"sendemail", "", "smtpServer", "./x", "run or send to \"./x\""},
	{"trailer", "x", "command", "./x", "run \"./x\""},
	{"tar", "x", "command", "./x", "run \"./x\""},
	{"browser", "x", "cmd", "./x", "run \"./x\""},
	{"man", "x", "cmd", "./x", "run \"./x\""},
	{"imap", "", "tunnel", "./x", "run \"./x\""},
	{"trace2", "", "normalTarget", "/x", "write to \"/x\""},
	{"user", "", "signingKey", "x", "harmless"},
	{"user", "", "name", "a\\nb", "not accepted"},
	{"user", "x", "name", "a", "harmless"},
	{"pull", "", "rebase", "x", "not accepted"},
	{"push", "", "default", "x", "not accepted"},
	{"safe", "", "directory", "*", "harmless"},
	{"web", "", "browser", "./x", "harmless"},
	{"unknown", "", "x", "y", "harmless"},
}

// spellings are ways to write a setting at the end of a file.
func spellings(section, group, name, value string) map[string]string {
	quoted := `"` + strings.ReplaceAll(value, `"`, `\"`) + `"`
	header := func(section string) string {
		if group == "" {
			return "[" + section + "]"
		}
		return fmt.Sprintf("[%s \"%s\"]", section, group)
	}
	half := len(value) / 2
	for half > 0 && value[half-1] == '\\' {
		half--
	}
	list := map[string]string{
		"plainly":          header(section) + "\n\t" + name + " = " + quoted + "\n",
		"in capitals":      header(strings.ToUpper(section)) + "\n" + strings.ToUpper(name) + "=" + quoted + "\n",
		"in small letters": header(strings.ToLower(section)) + strings.ToLower(name) + "=" + quoted,
		"behind another": "[user] name = Her\n[x][user]" + header(section) + name + "\t=\t" + quoted +
			" ; comment\n",
		"over several lines":  header(section) + name + " = \"" + value[:half] + "\\\n" + value[half:] + "\\\n\"\\\n\n",
		"with a return":       header(section) + "\r\n" + name + "=" + quoted + "\r\n",
		"twice":               header(section) + "\n" + name + "=" + quoted + "\n" + name + "=" + quoted + "\n",
		"behind a comment":    "# C:\\repo\\\n" + header(section) + "\n# x\n" + name + "=" + quoted,
		"behind what is fine": "[user]\n\temail = a@b.c\n" + header(section) + "\n" + name + "=" + quoted,
	}
	if group != "" {
		var escaped strings.Builder
		for _, c := range []byte(group) {
			escaped.WriteByte('\\')
			escaped.WriteByte(c)
		}
		list["with escapes"] = fmt.Sprintf("[%s \t\"%s\"]\n%s = %s\n", section, escaped.String(), name, quoted)
	}
	if group != "" && strings.ToLower(group) == group && strings.IndexFunc(group, func(r rune) bool {
		return !isAlphanumeric(r) && r != '-'
	}) < 0 {
		list["with a dot"] = "[" + section + "." + group + "]\n" + name + " = " + quoted + "\n"
	}
	return list
}

func TestJudge_RefusesWhatIsDangerous(t *testing.T) {
	t.Parallel()
	if len(dangerous) < 60 {
		t.Fatal(len(dangerous))
	}
	questions := map[string]bool{}
	for _, d := range dangerous {
		wanted := strings.ToLower(d.section + "." + d.group + "." + d.name)
		if d.group == "" {
			wanted = strings.ToLower(d.section + "." + d.name)
		}
		for how, text := range spellings(d.section, d.group, d.name, d.value) {
			v := judged(t, ordinary, ordinary+text)
			if len(v.Refused) == 0 {
				t.Errorf("%s, %s: accepted: %s", wanted, how, text)
				continue
			}
			r := v.Refused[len(v.Refused)-1]
			if strings.ToLower(r.Key) != wanted || !strings.Contains(r.Line, d.says) && !strings.Contains(r.Line, "…") {
				t.Errorf("%s, %s: %+v does not say %q", wanted, how, r, d.says)
			}
			if utf8.RuneCountInString(r.Line) > MaxLine || strings.ContainsAny(r.Line, "\n\r\x1b") ||
				strings.Contains(r.Line, "%!") {
				t.Errorf("%s: %q", wanted, r.Line)
			}
			if r.Change == "" || r.Whole == "" {
				continue // its place among the others, or too long
			}
			questions[wanted] = true
			for _, part := range []string{d.group, d.value} {
				shown := strings.Trim(display.QuoteWhole(part), `"`)
				written := strings.Contains(part, `\`) // as git escapes it
				if !written && !strings.Contains(strings.ToLower(r.Whole), strings.ToLower(shown)) {
					t.Errorf("%s, %s: the question does not show %q: %q", wanted, how, part, r.Whole)
				}
			}
			if strings.ContainsAny(r.Whole, "\n\r\x1b") ||
				strings.Contains(r.Whole, "%") != strings.Contains(d.value, "%") {
				t.Errorf("%s: %q", wanted, r.Whole)
			}
		}
	}
	if len(questions) < len(dangerous)*3/4 {
		t.Errorf("only %d settings of %d can be asked about", len(questions), len(dangerous))
	}
}

// A question shows every value whole, or there is none.
func TestJudge_QuestionsShowAllOfASetting(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 37)
	for _, test := range []struct{ added, whole string }{
		{"[core]\n\thooksPath = a", `"core.hooksPath" = "tools/hooks", "a": git would run the hooks in that`},
		{"[core]\n\tpager = a\n\tpager", `"core.pager" = "a", no value: git would run that as the pager`},
		{
			"[core]\n\tpager = \"x\\tz\x1b\u202e\u200b\\\"y\"",
			`"core.pager": git would run "x\tz\x1b\u202e\u200b\"y" as the pager`,
		},
		{"[core]\n\tpager = \"less; x:// y@z/\"", `"core.pager": git would run "less; x:\x2f/ y@z/" as the pager`},
		{
			"[url \"ext::./x\"]\n\tinsteadOf = https://a/\n",
			`"insteadOf": git would go to "ext::./x" instead of "https:\x2f/a/"`,
		},
		{
			"[url \"host:x\"]\n\tpushInsteadOf = a:\n\tpushInsteadOf = b:\n",
			`"pushInsteadOf": git would push to "host:x" instead of "a:", "b:"`,
		},
		{"[remote \"origin\"]\n\tpushurl = https://a.b", `"remote.origin.pushurl" = "https:\x2f/a.b": ` + whyPush},
		{"[core]\n\tpager = " + long, `"core.pager": git would run "` + long + `" as the pager`},
		{"[core]\n\tpager = " + long + "xxxx", ""},
		{"[core]\n\tpager = " + strings.Repeat("\u202e", 10), ""},
		{"[core]\n\tpager = " + strings.Repeat("x", 100_000), ""},
		{"[core \"" + strings.Repeat("x", 50) + "\"]\n\tpager = x", ""},
		{"[remote \"origin\"]\n\tpushurl = https://me:secret@a.b", ""},
		{"[url \"https://me:secret@a.b\"]\n\tinsteadOf = x:", ""},
	} {
		v := judged(t, ordinary, ordinary+test.added+"\n")
		if len(v.Refused) != 1 || v.Refused[0].Whole != test.whole {
			t.Errorf("%.60q: %+v", test.added, v.Refused)
		}
	}
	v := judged(t, ordinary, strings.Replace(ordinary, "\thooksPath = tools/hooks\n", "", 1))
	if want := `"core.hooksPath" removed: ` + whySet; len(v.Refused) != 1 || v.Refused[0].Whole != want {
		t.Errorf("%+v", v.Refused)
	}
}

// A refusal names a command only if that is one short line, and no secret.
func TestJudge_Refusals(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"[core]\nhooksPath = .husky/_":        `git config core.hooksPath .husky/_`,
		"[core]\nhooksPath = $(x)":            "",
		"[core]\nhooksPath = a b":             "",
		"[core]\nhooksPath = -x":              "",
		"[core]\nhooksPath = a\nhooksPath= b": "",
		"[core]\nsshCommand = \\\"\\n":        "",
	} {
		if v := judged(t, "", text); len(v.Refused) != 1 || v.Refused[0].Command != want {
			t.Errorf("%q: %+v, want %q", text, v.Refused, want)
		}
	}
	v := judged(t, "", "[remote \"x\"]\nurl = http://me:secret@a.b/c\n[x \"a\u202eb\"]\ny = z\n")
	if len(v.Refused) != 2 || strings.Contains(v.Refused[0].Line, "secret") ||
		strings.Contains(v.Refused[1].Line, "\u202e") {
		t.Errorf("%+v", v.Refused)
	}
}

func TestSummary(t *testing.T) {
	t.Parallel()
	got := Summary([]string{
		"user.name", "branch.t.remote", "branch.t.merge", "remote.a.url", "core.filemode", "remote.a.fetch",
		"submodule.s.url", "branch.a\x1bb.merge",
	})
	want := []string{
		`"remote.a"`, `"submodule.s"`, `"branch.a\x1bb"`, `"branch.t"`, `"core.filemode"`, `"user.name"`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}

// A file may have as many values of a key as it has lines. What a session may
// add is bounded, and the rest costs no more than to be read.
func TestJudge_IsLinearInTheValuesOfAKey(t *testing.T) {
	t.Parallel()
	file := func(values int) (before, after []gitconfig.Entry) {
		for i := range values {
			before = append(before, gitconfig.Entry{Key: "remote.origin.fetch", Value: fmt.Sprint(i), Valued: true})
			before = append(before, gitconfig.Entry{Key: fmt.Sprintf("branch.b%d.remote", i), Value: "x", Valued: true})
		}
		after = append(slices.Clone(before), gitconfig.Entry{
			Key: "remote.origin.fetch", Value: "+refs/heads/*:refs/remotes/origin/*", Valued: true,
		})
		return before, after
	}
	harness.Linear(t, 20_000, func(n int) {
		before, after := file(n)
		verdict := Judge(before, after, Facts{Added: func(gitconfig.Entry) bool { return true }})
		if len(verdict.Refused) > 0 || len(verdict.Added) != 1 {
			t.Fatalf("%d values: %+v", n, verdict)
		}
	})
	before, after := file(1)
	for i := range maxChanged {
		after = append(after, gitconfig.Entry{Key: "remote.origin.fetch", Value: fmt.Sprint("added", i), Valued: true})
	}
	if verdict := Judge(before, after, Facts{}); len(verdict.Refused) != 1 ||
		!strings.Contains(verdict.Refused[0].Line, "more have changed") {
		t.Errorf("%d values of one key are added: %+v", maxChanged+1, verdict.Refused)
	}
}
