//go:build linux

package protected

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/client"
	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// aDay is what an agent does with branches and remotes.
const aDay = `set -e
git checkout -q -b t origin/trunk; test "$(git rev-parse --abbrev-ref t@{u})" = origin/trunk
git config user.name Agent; git config user.email agent@example.com; git config pull.rebase true
git branch -m t u; test "$(git rev-parse --abbrev-ref u@{u})" = origin/trunk
git remote add fork https://example.com/fork.git; git remote add scp git@example.com:x.git
git remote set-url fork https://example.com/other.git; git remote remove scp
git branch -q --set-upstream-to=origin/trunk side 2>/dev/null || git branch -q side origin/trunk
git branch -q -u u side
echo new >new; git add new; git commit -qm new; git push -q -u origin HEAD:refs/heads/u
git submodule init 2>&1; git worktree add -q -b w tree origin/main; git worktree remove tree
git fetch -q --all 2>/dev/null || git fetch -q origin
echo fine`

// An agent's everyday changes of git's configuration work in each layout and
// with each kind of remote, and the review names them.
func TestGitChangesItsConfiguration(t *testing.T) {
	t.Parallel()
	harness.Require(t, "protected_paths")
	kinds := []string{"file", "http", "https", "ssh"}
	for i, name := range slices.Sorted(maps.Keys(layouts)) {
		if name == "none" || strings.HasPrefix(name, "package") {
			continue // a submodule is one of the root; see TestAPackageIsWorkedOn
		}
		for j, kind := range kinds {
			if !harness.Turn(t, i+j, len(kinds)) {
				continue
			}
			t.Run(name+"/"+kind, func(t *testing.T) {
				t.Parallel()
				for _, settings := range []string{harness.Off(), harness.Defaults(nil)} {
					s := newScene(t)
					layouts[name](s)
					origin := s.withOrigin()
					line := aDay
					switch kind {
					case "file":
						s.git(s.Project, "remote", "set-url", "origin", "file://"+origin)
					case "ssh":
						address, command := s.servedOverSSH(origin)
						s.git(s.Project, "remote", "set-url", "origin", address)
						line = "export GIT_SSH_COMMAND=" + harness.Quote(command) + "\n" + line
					default:
						address, certificate := s.served(origin, kind == "https")
						s.git(s.Project, "remote", "set-url", "origin", address)
						line = "export GIT_SSL_CAINFO=" + harness.Quote(certificate) + "\n" + line
					}
					if settings != harness.Off() {
						settings = harness.Defaults(harness.Sandbox{
							"additional_read_write_paths": []string{origin}, "allow_network": true, "localhost": "all",
							"additional_read_only_paths": []string{filepath.Join(s.Outside, "ssh")},
						})
					}
					e := s.start(settings, harness.Machine{})
					_, output, status, end := e.run(line)
					if status != 0 || !strings.HasSuffix(strings.TrimSpace(output), "fine") {
						t.Errorf("%s: status %d:\n%s", settings, status, output)
					}
					list := s.git(s.Project, "config", "--local", "--list")
					for _, want := range []string{
						"user.name=Agent", "branch.u.remote=origin", "branch.u.merge=refs/heads/u", "pull.rebase=true",
						"remote.fork.url=https://example.com/other.git", "branch.side.merge=refs/heads/u",
						"branch.w.remote=origin",
						"submodule.dep.url=https://example.com/dep.git", "submodule.dep.active=true",
					} {
						if !strings.Contains(list, want+"\n") {
							t.Errorf("%s: %s is missing:\n%s", settings, want, list)
						}
					}
					if strings.Contains(list, "remote.scp") || strings.Contains(list, "branch.t.") {
						t.Errorf("%s: not removed:\n%s", settings, list)
					}
					if settings == harness.Off() {
						continue
					}
					why := ""
					for _, f := range end.Review {
						if filepath.Base(f.Path) == "config" {
							why += f.Message
						}
					}
					if !strings.Contains(why, `"remote.fork"`) || !strings.Contains(why, `"user.name"`) {
						t.Errorf("review: %+v", end.Review)
					}
					for _, d := range e.denials.All() {
						if strings.Contains(d.Target, "config") {
							t.Errorf("refused: %+v", d)
						}
					}
				}
			})
		}
	}
}

// What would run something stays out, and the report names it.
func TestGitMayNotSetWhatRuns(t *testing.T) {
	t.Parallel()
	harness.Require(t, "protected_paths")
	s := newScene(t)
	s.repository(s.Project)
	s.withOrigin()
	before := harness.Read(t, s.ProjectPath(".git/config"))
	settings := map[string]string{
		"core.hooksPath": ".husky/_", "CORE.FSMONITOR": "./x", "core.sshCommand": "./x", "alias.st": "!./x",
		"include.path": "../x", "includeIf.gitdir:/.path": "../x", "credential.helper": "./x", "filter.x.clean": "./x",
		"diff.external": "./x", "merge.x.driver": "./x", "url.ext::x.insteadOf": "https://",
		"protocol.ext.allow":   "always",
		"submodule.dep.update": "!./x", "gpg.program": "./x", "uploadpack.packObjectsHook": "./x",
		"remote.origin.vcs": "x", "remote.origin.url": "https://example.com/evil", "extensions.worktreeConfig": "true",
		"core.bare": "true", "branch.main.remote": "https://example.com/evil", "remote.x.url": "ext::sh -c ./x",
		"remote.local.url": s.Project, "core.worktree": "/", "unknown.key": "x",
	}
	line := ""
	for key, value := range settings {
		key = harness.Quote(key)
		line += "git config " + key + " " + harness.Quote(value) + " && echo ACCEPTED " + key + "\n"
	}
	e := s.start(harness.Defaults(nil), harness.Machine{})
	_, output, _, end := e.run(line + "git config --unset remote.origin.url; git config --remove-section core; ls " +
		".git/*.lock; true")
	if strings.Contains(output, "ACCEPTED") || harness.Read(t, s.ProjectPath(".git/config")) != before {
		t.Errorf("%s\n%s", output, harness.Read(t, s.ProjectPath(".git/config")))
	}
	if !strings.Contains(output, "No such file") || len(s.review(end)) > 0 {
		t.Errorf("a lock is left, or reviewed: %q: %s", s.review(end), output)
	}
	for key := range settings {
		harness.Eventually(t, key+" is reported", func() bool {
			return slices.ContainsFunc(e.denials.All(), func(d protocol.DeniedParams) bool {
				return d.Access == "protected_write" &&
					strings.Contains(strings.ToLower(d.Message), strings.ToLower(key)) &&
					len([]rune(d.Message)) <= 100 && d.Process != nil && d.Process.Name == "git" &&
					d.Detail != "" && d.Hint != ""
			})
		})
	}
}

// A branch that is made anew under the name of one that a session has renamed
// does not push elsewhere, and neither does the renamed one.
func TestARenamedBranchLeadsWhereItDid(t *testing.T) {
	t.Parallel()
	harness.Require(t, "protected_paths")
	const rename = "git branch -m main old; git branch main; git remote add fork https://example.com/fork.git; "
	tests := map[string]struct{ line, key string }{
		"anew":    {rename + "git config branch.main.remote fork", "branch.main.remote"},
		"renamed": {rename + "git config branch.old.remote fork", "branch.old.remote"},
		"and back": {
			rename + "git branch -D main; git branch -m old main; git config branch.main.remote fork",
			"branch.main.remote",
		},
		"by a rename": {
			rename + "git branch x; git config branch.x.remote fork; git branch -D main; git branch -m x main",
			"branch.main.remote",
		},
	}
	begin := func(s *scene, name string) (line string) {
		s.repository(s.Project)
		s.withOrigin()
		s.git(s.Project, "branch", "-q", "-u", "origin/main", "main")
		return tests[name].line
	}
	leads := func(s *scene, key string) string {
		to, _ := exec.Command("git", "-C", s.Project, "config", key).Output()
		return string(to)
	}
	controls, printed := withoutSandbox(t, maps.Keys(tests), begin)
	confined := share(t, harness.Defaults(nil))
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if to := leads(controls[name], test.key); to != "fork\n" {
				t.Fatalf("control: %q: %s", to, printed)
			}
			s, e := confined.in(t)
			_, output, _, _ := e.run(begin(s, name))
			if to := leads(s, test.key); to == "fork\n" || !strings.Contains(output, "not permitted") {
				harness.Breach(t, "it is %q: %s", to, output)
			}
		})
	}
}

// husky's prepare script is refused with the line that sets it up.
func TestHuskyIsToldTheLineThatItNeeds(t *testing.T) {
	t.Parallel()
	harness.Require(t, "protected_paths")
	s := newScene(t)
	s.repository(s.Project)
	harness.Write(t, s.UserSettings(), harness.Defaults(nil))
	command := exec.Command(harness.Binary(t), "exec", "--", "git", "config", "core.hooksPath", ".husky/_")
	command.Dir, command.Env = s.Project, harness.Environ(s.World)
	out, err := command.CombinedOutput()
	text := harness.Unfold(string(out))
	if err == nil || !strings.Contains(text, `git's "core.hooksPath": git would run the hooks in ".husky/_"`) ||
		!strings.Contains(text, "run outside the sandbox: git config core.hooksPath .husky/_") {
		t.Errorf("%v: %s", err, out)
	}
}

// With "ask" the user is asked about exactly the setting, and the answer holds
// for that one change.
func TestTheUserIsAskedAboutASetting(t *testing.T) {
	t.Parallel()
	harness.Require(t, "protected_paths")
	for decision, want := range map[protocol.Decision]string{
		protocol.DecisionOnce: "a\n", protocol.DecisionSession: "a\n", protocol.DecisionDeny: "",
	} {
		s := newScene(t)
		s.repository(s.Project)
		e := s.startWith(harness.Options{
			Settings:   harness.Defaults(harness.Sandbox{"on_denied": "ask"}),
			Initialize: func(p *protocol.InitializeParams) { p.Capabilities.Approvals = true },
		})
		questions := make(chan protocol.RequestAccessParams, 10)
		client.OnRequest(
			e.Client, protocol.RequestAccess, func(p protocol.RequestAccessParams) protocol.RequestAccessResult {
				if p.Access != "protected_write" {
					return protocol.RequestAccessResult{Decision: protocol.DecisionDeny}
				}
				questions <- p
				if strings.Contains(p.Message, `"b"`) {
					return protocol.RequestAccessResult{Decision: protocol.DecisionDeny}
				}
				return protocol.RequestAccessResult{Decision: decision}
			})
		e.run("git config core.hooksPath a; git config core.hooksPath b; git config user.name x")
		if got, _ := exec.Command("git", "-C", s.Project, "config", "core.hooksPath").Output(); string(got) != want {
			t.Errorf("%s: %q", decision, got)
		}
		close(questions)
		var asked []string
		for q := range questions {
			asked = append(asked, q.Message)
			if q.Suggestion != nil || len(q.Choices) != 3 || len([]rune(q.Message)) > 100 {
				t.Errorf("%+v", q)
			}
		}
		wanted := []string{
			`"git" wants "core.hooksPath": git would run the hooks in "a".`,
			`"git" wants "core.hooksPath": git would run the hooks in "b".`,
		}
		if !slices.Equal(asked, wanted) {
			t.Errorf("%s: %q", decision, asked)
		}
	}
}

// A question shows all that a yes would let git run. What is too long for that
// is refused, whatever the user would have answered.
func TestNothingOfASettingIsHiddenInAQuestion(t *testing.T) {
	t.Parallel()
	harness.Require(t, "protected_paths")
	s := newScene(t)
	s.repository(s.Project)
	e := s.startWith(harness.Options{
		Settings:   harness.Defaults(harness.Sandbox{"on_denied": "ask"}),
		Initialize: func(p *protocol.InitializeParams) { p.Capabilities.Approvals = true },
	})
	questions := make(chan protocol.RequestAccessParams, 10)
	client.OnRequest(
		e.Client, protocol.RequestAccess, func(p protocol.RequestAccessParams) protocol.RequestAccessResult {
			questions <- p
			return protocol.RequestAccessResult{Decision: protocol.DecisionOnce}
		})
	const padding = "/usr/share/git-core/contrib/a/long/path"
	hidden := "less " + padding + ";touch ran;less " + padding
	for _, test := range []struct{ key, value, shown string }{
		{"core.pager", "less;touch ran;less -x", "less;touch ran;less -x"},
		{"core.editor", "vi \u202e\x1b[8m", `vi \u202e\x1b[8m`},
		{"url.evil.org:x.insteadOf", "a.org:", `go to "evil.org:x" instead of "a.org:"`},
		{"core.askPass", hidden, ""},
		{"core.sshCommand", strings.Repeat("\u202e", 10), ""},
		{"credential.helper", "!" + strings.Repeat("x", 100_000), ""},
	} {
		harness.Write(t, s.ProjectPath("value"), test.value)
		_, output, _, _ := e.run(`git config ` + test.key + ` "$(cat value)"`)
		got, _ := exec.Command("git", "-C", s.Project, "config", test.key).Output()
		asked := ""
		select {
		case q := <-questions:
			asked = q.Message
		default:
		}
		switch set := strings.TrimSuffix(string(got), "\n"); {
		case test.shown == "" && (asked != "" || set != ""):
			harness.Breach(t, "%s: asked %q, and set %.60q", test.key, asked, set)
		case test.shown != "" && !strings.Contains(asked, test.shown):
			harness.Breach(t, "%s: the question does not show %q: %q", test.key, test.shown, asked)
		case test.shown != "" && set != test.value:
			t.Errorf("control: %s: after a yes git has %q: %s", test.key, set, output)
		}
	}
}

// evil is what no session may write.
const evil = "[core]\n\thooksPath = evil\n"

// A lock that is not what git writes changes nothing, whoever makes it.
func TestStrangeLocksChangeNothing(t *testing.T) {
	t.Parallel()
	harness.Require(t, "protected_paths")
	const move = `perl -e 'rename ".git/config.lock", ".git/config" or die "REFUSED $!\n"'; `
	confined := share(t, harness.Defaults(nil))
	for name, test := range map[string]struct{ line, says string }{
		"a symlink":   {`printf "$GOOD" >x; ln -s ../x .git/config.lock`, "git outside would follow it"},
		"a FIFO":      {`mkfifo .git/config.lock`, "git outside would wait for it"},
		"a directory": {`mkdir .git/config.lock`, "no plain file"},
		"10 MB": {
			`cp .git/config .git/config.lock; head -c 10000000 /dev/zero | tr '\0' '#' >>.git/config.lock`, "more than",
		},
		"a hard link":   {`printf "$GOOD" >.git/x; ln .git/x .git/config.lock`, "plain file of its own"},
		"NUL":           {`{ printf "$GOOD"; printf '#\0\n'; } >.git/config.lock`, "NUL"},
		"no syntax":     {`printf '[core\n' >.git/config.lock`, "could not read"},
		"an empty file": {`: >.git/config.lock`, "set before"},
		"a hook":        {`{ cat .git/config; printf "$EVIL"; } >.git/config.lock`, "hooksPath"},
		"a byte mark": {
			`{ printf '\357\273\277'; cat .git/config; printf "$EVIL"; } >.git/config.lock`, "hooksPath",
		},
		"a continuation": {
			`{ cat .git/config; printf '[core]\nhooks\\\nPath = x\n'; } >.git/config.lock`, "could not read",
		},
		"many": {
			`{ cat .git/config; i=0; while [ $i -lt 300 ]; do echo "[branch \"b$i\"]"; echo " remote = ."; i=$((i+1)); done; } ` +
				`>.git/config.lock`,
			"more have changed",
		},
		"a long section": {
			`{ cat .git/config; printf '[x "'; head -c 300000 /dev/zero | tr '\0' 'y'; printf '"]\n'; ` +
				`yes a | head -n 300000; } >.git/config.lock`,
			"could not read",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, e := confined.in(t)
			s.repository(s.Project)
			before := harness.Read(t, s.ProjectPath(".git/config"))
			const good = `[core]\nrepositoryformatversion = 0\nfilemode = true\nbare = false\nlogallrefupdates = true\n`
			setup := "GOOD='" + good + "'; EVIL='" + strings.ReplaceAll(evil, "\n", `\n`) + "'; "
			reply, output, _, _ := e.run(setup + test.line + "; " + move)
			if after := harness.Read(t, s.ProjectPath(".git/config")); after != before ||
				!strings.Contains(output, "REFUSED") {
				t.Errorf("%s\n%s", output, after)
			}
			harness.Eventually(t, "it is reported: "+test.says, func() bool {
				return slices.ContainsFunc(e.denials.Of(reply.SessionID), func(d protocol.DeniedParams) bool {
					return strings.Contains(d.Message, test.says) && len([]rune(d.Message)) <= 100
				})
			})
			// The same way is open for a harmless change.
			_, output, status, _ := e.run("rm -rf .git/config.lock; { cat .git/config; printf " +
				"'[user]\\nname = x\\n'; } >.git/config.lock; " + move)
			if after := harness.Read(t, s.ProjectPath(".git/config")); status != 0 ||
				!strings.HasSuffix(after, "name = x\n") {
				t.Errorf("control: %s\n%s", output, after)
			}
		})
	}
}

// A program that changes the lock while it is judged gets what was judged, or
// nothing.
func TestALockThatChangesIsReadOnce(t *testing.T) {
	t.Parallel()
	harness.Require(t, "protected_paths")
	s := newScene(t)
	s.repository(s.Project)
	const line = `cp .git/config good; cp .git/config bad; printf '[user]\nname = good\n' >>good
printf '[core]\nhooksPath = evil\n' >>bad
cat >race.pl <<'EOF'
use strict; my $n = 0;
my $pid = fork();
if (!$pid) { while (getppid() != 1) { # swap the file, or its content
  open(my $f, "<", "bad"); local $/; my $bad = <$f>;
  if (open(my $l, "+<", ".git/config.lock")) { print $l $bad; close $l; }
  link("bad", "b$$"); rename("b$$", ".git/config.lock") if rand() < 0.2 && -e ".git/config.lock"; unlink "b$$";
} exit }
open(my $g, "<", "good"); my $good = do { local $/; <$g> };
for my $i (1..400) {
  open(my $l, ">", ".git/config.lock") or next; print $l $good; close $l;
  $n++ if rename(".git/config.lock", ".git/config");
  open(my $c, "<", ".git/config"); local $/; if (<$c> =~ /evil/) { print "WRITTEN\n"; last }
  unlink ".git/config.lock";
}
kill 9, $pid; waitpid($pid, 0); print "accepted $n\n";
EOF
perl race.pl`
	_, output, status, _ := s.start(harness.Defaults(nil), harness.Machine{}).run(line)
	if status != 0 || strings.Contains(output, "WRITTEN") ||
		strings.Contains(harness.Read(t, s.ProjectPath(".git/config")), "evil") {
		t.Errorf("status %d: %s", status, output)
	}
	accepted := regexp.MustCompile(`accepted (\d+)`).FindStringSubmatch(output)
	if accepted == nil || accepted[1] == "0" {
		t.Errorf("control: nothing was accepted: %s", output)
	}
}

// git in the session and git outside take turns, by git's own lock.
func TestGitInsideAndOutsideTakeTurns(t *testing.T) {
	t.Parallel()
	harness.Require(t, "protected_paths")
	s := newScene(t)
	s.repository(s.Project)
	e := s.start(harness.Defaults(nil), harness.Machine{})
	rounds := 20
	if testing.Short() {
		rounds = 8
	}
	session := e.Spawn(protocol.SpawnParams{Kind: protocol.Tool, Command: "/bin/sh", Args: []string{"-c", fmt.Sprintf(`
for n in name email; do
( i=0; while [ $i -lt %d ]; do git config user.$n i$i 2>/dev/null && i=$((i+1)); done ) &
done
wait; echo done`, rounds)}})
	for i := 0; i < rounds; {
		command := exec.Command("git", "config", "gc.auto", fmt.Sprint(100+i))
		command.Dir, command.Env = s.Project, harness.Environ(s.World)
		if command.Run() == nil {
			i++
		}
	}
	session.Await("done")
	list := s.git(s.Project, "config", "--local", "--list")
	for _, want := range []string{
		fmt.Sprintf("user.name=i%d\n", rounds-1), fmt.Sprintf("user.email=i%d\n", rounds-1),
		fmt.Sprintf("gc.auto=%d\n", 99+rounds), "core.bare=false\n",
	} {
		if strings.Count(list, want) != 1 {
			t.Errorf("%q: %s", want, list)
		}
	}
	if _, err := os.Lstat(s.ProjectPath(".git/config.lock")); err == nil {
		t.Error("a lock is left")
	}
}

// The configuration of one worktree is judged, too. What a user protects by name
// stays as it is.
func TestWorktreeConfigurationIsJudged(t *testing.T) {
	t.Parallel()
	harness.Require(t, "protected_paths")
	s := newScene(t)
	s.repository(s.Project)
	s.git(s.Project, "config", "extensions.worktreeConfig", "true")
	s.git(s.Project, "config", "--worktree", "user.name", "first")
	const line = "git config --worktree user.name second; git config --worktree core.hooksPath evil; true"
	_, output, _, end := s.start(harness.Defaults(nil), harness.Machine{}).run(line)
	if got := harness.Read(t, s.ProjectPath(".git/config.worktree")); !strings.Contains(got, "second") ||
		strings.Contains(got, "evil") || !slices.Contains(s.review(end), "changed .git/config.worktree") {
		t.Errorf("%s\n%s", output, got)
	}
	settings := harness.Defaults(harness.Sandbox{"protected_paths": []string{".git/config"}})
	_, output, status, _ := s.start(settings, harness.Machine{}).run("git config user.name third")
	if status == 0 || strings.Contains(harness.Read(t, s.ProjectPath(".git/config")), "third") {
		t.Errorf("status %d: %s", status, output)
	}
}
