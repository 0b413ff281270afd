//go:build linux

package denials

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// wide answers with the whole directory, where that is offered.
func wide(p protocol.RequestAccessParams) protocol.Decision {
	if slices.Contains(p.Choices, protocol.DecisionDirectory) {
		return protocol.DecisionDirectory
	}
	return protocol.DecisionDeny
}

// One answer lets a program read a whole directory, and nothing beside it.
func TestADirectoryIsOneAnswer(t *testing.T) {
	t.Parallel()
	harness.Require(t, "filesystem")
	s := newScene(t)
	files := shorter(15, 6)
	var line strings.Builder
	for i := range files {
		name := fmt.Sprintf("dir/%d/file", i)
		harness.Write(t, s.OutsidePath(name), "content\n")
		fmt.Fprintf(&line, "cat %s; ", s.OutsidePath(name))
	}
	harness.Write(t, s.OutsidePath("dir/top"), "content\n")
	harness.Write(t, s.OutsidePath("directory/beside"), "content\n")
	e := s.ask(nil, func(p protocol.RequestAccessParams) protocol.Decision {
		if p.Target == s.OutsidePath("dir/top") && p.Access == "read" {
			return wide(p)
		}
		return protocol.DecisionDeny
	})
	all := fmt.Sprintf("cat %s; ls %s >&2; %s", s.OutsidePath("dir/top"), s.OutsidePath("dir"), line.String())
	session, _, denials := e.tool("sh", "-c", all)
	if got := strings.Count(session.Output(), "content"); got != files+1 || len(e.all()) != 1 || len(denials) > 0 {
		t.Errorf("read %d files, asked %d times, denials %+v: %s", got, len(e.all()), denials, session.Output())
	}
	if q := e.all()[0]; q.Directory != s.OutsidePath("dir") {
		t.Errorf("asked %+v", q)
	}
	for _, refused := range []string{
		"cat " + s.OutsidePath("directory/beside"),
		"echo x >" + s.OutsidePath("dir/top"), "rm " + s.OutsidePath("dir/top"), "mkdir " + s.OutsidePath("dir/new"),
	} {
		if session, status, _ := e.tool("sh", "-c", "cat "+s.OutsidePath("dir/top")+" >&2; "+refused); status == 0 {
			harness.Breach(t, "%s: %s", refused, session.Output())
		}
	}
	// The control: without such an answer each file is a question.
	e = s.ask(nil, always(protocol.DecisionSession))
	if e.tool("sh", "-c", all); len(e.all()) != files+2 {
		t.Errorf("control: asked %d times", len(e.all()))
	}
}

// Programs that read a directory at once wait for the answer about it.
func TestADirectoryIsOneAnswerForAll(t *testing.T) {
	t.Parallel()
	harness.Require(t, "filesystem")
	s := newScene(t)
	const mostQuestions = 8
	files := shorter(40, 16)
	for i := range files {
		harness.Write(t, s.OutsidePath(fmt.Sprintf("dir/%d", i)), "content\n")
	}
	asked := make(chan bool, files)
	answer := make(chan protocol.Decision)
	e := s.ask(nil, func(protocol.RequestAccessParams) protocol.Decision {
		asked <- true
		return <-answer
	})
	crowd := e.Spawn(protocol.SpawnParams{
		Kind: protocol.Tool,
		Command: fmt.Sprintf("i=0; while [ $i -lt %d ]; do cat %s/$i & i=$((i+1)); done; wait", files,
			s.OutsidePath("dir")),
	})
	for range mostQuestions {
		<-asked
	}
	answer <- protocol.DecisionDirectory
	crowd.Exit()
	if got := strings.Count(crowd.Output(), "content"); got != files || len(e.all()) != mostQuestions {
		t.Errorf("%d of %d read, asked %d times: %s", got, files, len(e.all()), crowd.Output())
	}
	e.awaitWithdrawn(t, mostQuestions-1)
	close(answer)
}

// git push makes, renames and removes files in a repository beside the project.
func TestAPushIntoARepositoryOutside(t *testing.T) {
	t.Parallel()
	harness.Require(t, "filesystem")
	s := newScene(t)
	git := func(dir string, args ...string) string {
		t.Helper()
		command := exec.Command("git", args...)
		command.Dir, command.Env = dir, append(os.Environ(), "HOME="+s.Home)
		out, err := command.CombinedOutput()
		if err != nil {
			t.Fatalf("git %v: %v: %s", args, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	remote := s.OutsidePath("remote.git")
	git(s.Outside, "init", "-q", "--bare", "remote.git")
	git(s.Project, "init", "-q")
	for i := range 12 {
		harness.Write(t, s.ProjectPath(fmt.Sprint("file", i)), fmt.Sprint(i))
	}
	git(s.Project, "add", ".")
	git(s.Project, "-c", "user.name=u", "-c", "user.email=u@e", "commit", "-q", "-m", "first")
	push := "git push -q " + remote + " HEAD:refs/heads/main"
	e := s.ask(nil, always(protocol.DecisionSession))
	if session, status, _ := e.tool("sh", "-c", push); status == 0 {
		t.Errorf("control: a push with an answer for each file: %s", session.Output())
	}
	e = s.ask(nil, wide)
	session, status, denials := e.tool("sh", "-c", push)
	if status != 0 {
		t.Fatalf("status %d, asked %+v, denials %+v: %s", status, e.all(), denials, session.Output())
	}
	if asked := len(e.all()); asked > 4 {
		t.Errorf("asked %d times: %+v", asked, e.all())
	}
	if got, want := git(remote, "rev-parse", "main"), git(s.Project, "rev-parse", "HEAD"); got != want {
		t.Errorf("main is %s, want %s", got, want)
	}
	git(remote, "fsck", "--strict")
	for _, line := range []string{
		"echo x >" + remote + "/hooks/post-update", "echo x >>" + remote + "/config", "echo x >" + remote + "/new",
		"mv " + remote + "/hooks/update.sample " + remote + "/hooks/update",
		"mv " + remote + "/HEAD " + remote + "/config",
	} {
		if session, status, _ := e.tool("sh", "-c", "cat "+remote+"/HEAD; "+line); status == 0 {
			harness.Breach(t, "%s: %s", line, session.Output())
		}
	}
	left, err := filepath.Glob(remote + "/objects/tmp_*")
	if err != nil || len(left) > 0 {
		t.Errorf("left: %q, %v", left, err)
	}
}

// rename is a shell's line that makes one call, where mv would copy.
func rename(from, to string) string {
	return fmt.Sprintf(`/usr/bin/python3 -c 'import os; os.rename("%s", "%s")'`, from, to)
}

// What an answer about a directory does not open.
func TestADirectoryOpensNothingElse(t *testing.T) {
	t.Parallel()
	harness.Require(t, "filesystem")
	s := newScene(t)
	dir := s.OutsidePath("dir")
	harness.Write(t, dir+"/file", "old\n")
	harness.Write(t, dir+"/sub/file", "sub\n")
	harness.Write(t, s.OutsidePath("beside/file"), "beside\n")
	harness.Write(t, s.ProjectPath("own"), "own\n")
	harness.Write(t, dir+"/.env", "secret\n")
	harness.MakeDir(t, s.OutsidePath("solo"))
	harness.Must(t, os.Symlink("../beside/file", dir+"/link"))
	e := s.ask(nil, func(p protocol.RequestAccessParams) protocol.Decision {
		if p.Directory == dir || p.Directory == s.OutsidePath("solo") {
			return wide(p)
		}
		return protocol.DecisionDeny
	})
	run := func(line string) (string, int) {
		t.Helper()
		line = fmt.Sprintf("cd %s && echo opened >first && rm first && { %s; }", dir, line)
		session, status, _ := e.tool("sh", "-c", line)
		return session.Output(), status
	}
	// The control: in the directory, everything works.
	for line, want := range map[string]string{
		"echo new >made && cat made":                                           "new\n",
		"umask 027 && mkdir d && umask 0 && mkdir d/e && stat -c %a d d/e":     "750\n777\n",
		"echo x >a && mv a b && ln b c && cat b c && rm b && cat c":            "x\nx\nx\n",
		"mkdir gone && rmdir gone && ls -d gone 2>/dev/null || echo none":      "none\n",
		rename("file", "sub/moved") + " && cat sub/moved && mv sub/moved file": "old\n",
		"cp -r sub copied && cat copied/file":                                  "sub\n",
	} {
		if out, status := run(line); out != want || status != 0 {
			t.Errorf("control: %s: status %d: %q, want %q", line, status, out, want)
		}
	}
	for _, line := range []string{
		"cat ../beside/file", "echo x >../beside/file", "mv ../beside/file x", "ln ../beside/file x",
		"mv file ../beside/", "rm ../beside/file", "mkdir ../beside/d", "ln -s /etc/passwd x", "mknod x p",
		rename("sub", "other"), rename("link", "x"), rename("file", "../beside/x"), rename("../beside/file", "x"),
		rename("file", "HEAD"), rename(".env", "x"), "chmod 4755 file", "mkdir -m 2777 marked",
		"ln -L link x", "ln -P link x", "cat link", "echo x >link",
		"echo x >../solo/x && rm ../solo/x && rmdir ../solo",
		"cat .env", "echo x >.env", "ln .env x", "echo x >server.key", "echo all: >Makefile", "echo x >HEAD",
		"mkdir -p r/.git/hooks && echo x >r/.git/hooks/post-commit", "mkdir -p r2/.git && echo x >r2/.git/config",
		"mkdir -p x/hooks && " + rename("x/hooks", "y"), "ln " + s.ProjectPath("own") + " x",
	} {
		if out, status := run(line); status == 0 {
			harness.Breach(t, "%s: %s", line, out)
		}
	}
	for file, want := range map[string]string{
		dir + "/.env": "secret\n", dir + "/file": "old\n",
		dir + "/sub/file": "sub\n", s.OutsidePath("beside/file"): "beside\n",
	} {
		if got := harness.Read(t, file); got != want {
			harness.Breach(t, "%s holds %q", file, got)
		}
	}
	harness.Must(t, os.Remove(dir+"/link"))
	find := exec.Command("find", dir, "(", "-type", "l", "-o", "-type", "p", "-o", "-perm", "/7000", ")")
	if out, err := find.Output(); err != nil || len(out) > 0 {
		harness.Breach(t, "in the directory: %s, %v", out, err)
	}
}

// What the user protects outside of the project and of all grants is not asked
// about, and no answer about its directory opens it.
func TestADirectoryKeepsWhatIsProtected(t *testing.T) {
	t.Parallel()
	harness.Require(t, "filesystem")
	s := newScene(t)
	dir := s.OutsidePath("dir")
	kept := []string{dir + "/kept/file", dir + "/one.lock", dir + "/led/to"}
	for _, path := range append([]string{dir + "/file"}, kept...) {
		harness.Write(t, path, "old\n")
	}
	harness.Must(t, os.Symlink("dir/led/to", s.OutsidePath("link")))
	answers := map[string]func(protocol.RequestAccessParams) protocol.Decision{
		"directory": wide, "session": always(protocol.DecisionSession),
	}
	for i, name := range slices.Sorted(maps.Keys(answers)) {
		e := s.ask(harness.Sandbox{
			"protected_paths": []string{dir + "/kept", dir + "/*.lock", s.OutsidePath("link")},
		}, answers[name])
		run := func(line string) (string, int) {
			t.Helper()
			session, status, _ := e.tool("sh", "-c", fmt.Sprintf("cd %s && cat file >&2 && { %s; }", dir, line))
			return session.Output(), status
		}
		for _, line := range []string{
			"cat kept/file one.lock led/to", "echo old >file", "echo x >led/beside",
		} {
			if out, status := run(line); status != 0 {
				t.Errorf("control: %s: %s: status %d: %s", name, line, status, out)
			}
		}
		before := len(e.all())
		for j, line := range []string{ // which the answers take turns to meet
			"echo x >kept/file", "rm kept/file", "echo x >kept/new", "mkdir kept/d", "mv file kept/", "ln file kept/x",
			"echo x >one.lock", "echo x >two.lock", "rm one.lock", rename("file", "one.lock"), rename("one.lock", "x"),
			"echo x >led/to", "rm led/to", rename("file", "led/to"),
		} {
			if !harness.Turn(t, i+j, len(answers)) {
				continue
			}
			if out, status := run(line); status == 0 {
				harness.Breach(t, "%s: %s: %s", name, line, out)
			}
		}
		for _, q := range e.all()[before:] {
			if slices.ContainsFunc(append(kept, dir+"/two.lock", dir+"/kept/new"), func(path string) bool {
				return q.Target == path && q.Access != "read"
			}) {
				harness.Breach(t, "%s: asked %+v", name, q)
			}
		}
		for _, path := range append([]string{dir + "/file"}, kept...) {
			if got := harness.Read(t, path); got != "old\n" {
				harness.Breach(t, "%s: %s holds %q", name, path, got)
			}
		}
	}
}

// The whole directory is no answer where a grant of it would not be suggested.
func TestADirectoryIsNotOfferedWhereOthersAct(t *testing.T) {
	t.Parallel()
	harness.Require(t, "filesystem")
	s := newScene(t)
	harness.Write(t, s.HomePath("data/file"), "content\n")
	harness.Write(t, s.HomePath(".netrc"), "content\n")
	harness.Write(t, s.HomePath("notes"), "content\n")
	harness.Write(t, s.OutsidePath("keys/creds"), "secret\n")
	harness.Write(t, s.OutsidePath("keys/other"), "content\n")
	harness.MakeDir(t, s.HomePath(".aws"))
	harness.Must(t, os.Symlink(s.OutsidePath("keys/creds"), s.HomePath(".aws/credentials")))
	harness.Write(t, s.OutsidePath("repos/one/.git/HEAD"), "ref: refs/heads/main\n")
	harness.Write(t, s.OutsidePath("repos/note"), "content\n")
	e := s.ask(nil, always(protocol.DecisionDeny))
	for line, offered := range map[string]bool{
		"cat " + s.HomePath("data/file"):         true,
		"echo x >" + s.HomePath("data/file"):     true,
		"rm " + s.HomePath("data/file"):          true,
		"cat " + s.OutsidePath("keys/other"):     false,
		"cat " + s.HomePath("notes"):             false,
		"echo x >" + s.HomePath("notes"):         false,
		"echo x >" + s.OutsidePath("repos/note"): false,
		"rm " + s.HomePath("notes"):              false,
		"cat " + s.OutsidePath("repos/note"):     true,
	} {
		before := len(e.all())
		e.tool("sh", "-c", line)
		asked := e.all()[before:]
		got := slices.ContainsFunc(asked, func(p protocol.RequestAccessParams) bool { return p.Directory != "" })
		if got != offered {
			t.Errorf("%s: asked %+v", line, asked)
		}
	}
}

// Who allows a change for good allows it in this session, too, with what follows. By
// "." the kernel removes nothing.
func TestADirectoryIsAllowedForGood(t *testing.T) {
	t.Parallel()
	harness.Require(t, "filesystem")
	s := newScene(t)
	dir := s.OutsidePath("dir")
	harness.MakeDir(t, dir)
	harness.Must(t, os.Chmod(dir, 0o755|os.ModeSetgid)) // as in a repository of a group
	e := s.ask(nil, always(protocol.DecisionUser))
	const line = `umask 022; mkdir a && stat -c %a a && echo x >a/f && mv a/f a/g && ln a/g a/h && rm a/g &&
		cat a/h && rm a/h && rmdir a/ && mkdir b/ &&
		! rmdir b/. 2>/dev/null && ! ln none x 2>error && grep -o "No such file" error`
	session, status, denials := e.tool("sh", "-c", "cd "+dir+" && "+line)
	if status != 0 || session.Output() != "2755\nx\nNo such file\n" || len(e.all()) != 1 || len(denials) != 1 {
		t.Errorf("status %d, asked %+v, denials %+v: %s", status, e.all(), denials, session.Output())
	}
	if got := harness.Read(t, s.UserSettings()); !strings.Contains(got, dir) {
		t.Errorf("the settings: %s", got)
	}
}

// No answer is kept for a name: it is judged by what is there by now.
func TestADirectoryIsJudgedAnew(t *testing.T) {
	t.Parallel()
	harness.Require(t, "filesystem")
	s := newScene(t)
	dir := s.OutsidePath("dir")
	harness.MakeDir(t, dir+"/x")
	e := s.ask(nil, wide)
	session := e.Spawn(protocol.SpawnParams{
		Kind: protocol.Tool, Cwd: s.Project,
		Command: fmt.Sprintf(`echo new >%[1]s/x/config; echo first >%[1]s/x/config; touch ready
			until test -e go; do sleep 0.02; done
			echo second >%[1]s/x/config; echo third >%[1]s/x/objects/other`, dir),
	})
	harness.Eventually(t, "the first write", func() bool {
		_, err := os.Lstat(s.ProjectPath("ready"))
		return err == nil
	})
	// The user makes a repository there, whose configuration git outside reads.
	harness.Write(t, dir+"/x/HEAD", "ref: refs/heads/main\n")
	harness.MakeDir(t, dir+"/x/objects")
	harness.MakeDir(t, dir+"/x/refs")
	harness.Write(t, s.ProjectPath("go"), "")
	session.Exit()
	if got := harness.Read(t, dir+"/x/config"); got != "first\n" {
		harness.Breach(t, "the configuration holds %q: %s", got, session.Output())
	}
	if got := harness.Read(t, dir+"/x/objects/other"); got != "third\n" {
		t.Errorf("control: %q", got)
	}
}
