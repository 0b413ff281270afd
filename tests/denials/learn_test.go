//go:build linux

package denials

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// learnt is the output of learn.
type learnt struct {
	status int
	said   string // on standard error, together with the command's own output
	text   string
	block  map[string]any
}

// learn runs learn under settings, with the world's home.
func (s *scene) learn(settings string, argv ...string) learnt {
	s.T.Helper()
	file := filepath.Join(s.Home, "learnt.json")
	_ = os.Remove(file) // of a run before
	command := s.execute(settings, append([]string{"learn", "-o", file, "--"}, argv...)...)
	var out bytes.Buffer
	command.Stdout, command.Stderr = &out, &out
	_ = command.Run()
	l := learnt{
		status: command.ProcessState.ExitCode(), said: harness.Unfold(out.String()), text: harness.Read(s.T, file),
	}
	var document struct {
		Terminal struct{ Sandbox map[string]any }
	}
	if err := json.Unmarshal([]byte(l.text), &document); err != nil {
		s.T.Fatalf("%v: %q\n%s", err, l.text, l.said)
	}
	l.block = document.Terminal.Sandbox
	return l
}

// list is one list of the printed settings.
func (l learnt) list(key string) []string {
	entries, _ := l.block[key].([]any)
	list := []string{}
	for _, entry := range entries {
		list = append(list, entry.(string))
	}
	return list
}

// learn lets a command read and execute, refuses its writes, and prints both.
// With the printed settings the command works.
func TestLearnPrintsWhatACommandNeeds(t *testing.T) {
	t.Parallel()
	s := newObservedScene(t)
	for i := range 6 {
		harness.Write(t, s.OutsidePath(fmt.Sprintf("data/%d", i)), fmt.Sprintf("data %d\n", i))
	}
	harness.Write(t, s.OutsidePath("single/one"), "one\n")
	harness.Write(t, s.OutsidePath("before/x"), "before\n")
	harness.Write(t, filepath.Join(s.Home, ".ssh", "id"), "secret key\n")
	program := filepath.Join(s.Home, ".cargo", "bin", "tool")
	harness.Victim(t, "tests/victim", makeDirs(t, program))
	if err := os.Mkdir(s.OutsidePath("made"), 0o700); err != nil {
		t.Fatal(err)
	}
	settings := harness.Sandbox{"additional_read_only_paths": []string{s.OutsidePath("before")}}
	line := fmt.Sprintf("cat %s/data/* %s %s || exit; %s privileges >/dev/null || exit; cat %s/.ssh/id; echo x >%s",
		s.Outside, s.OutsidePath("single/one"), s.OutsidePath("before/x"), program, s.Home, s.OutsidePath("made/new"))
	first := s.learn(harness.Settings(settings), "sh", "-c", line)
	if first.status == 0 || strings.Contains(first.said, "secret key") ||
		!strings.Contains(first.said, "data 5\none\nbefore\n") {
		t.Errorf("status %d:\n%s", first.status, first.said)
	}
	if _, err := os.Stat(s.OutsidePath("made/new")); err == nil {
		t.Error("it was written while it was learnt")
	}
	want := map[string][]string{
		"additional_read_only_paths":  {s.OutsidePath("before"), s.OutsidePath("data"), s.OutsidePath("single/one")},
		"additional_read_write_paths": {s.OutsidePath("made")},
		"toolchains":                  {"rust"},
		"additional_executable_paths": {},
	}
	for key, entries := range want {
		got := first.list(key)
		slices.Sort(got)
		slices.Sort(entries)
		if !slices.Equal(got, entries) {
			t.Errorf("%s is %q, want %q", key, got, entries)
		}
	}
	if !strings.Contains(first.said, "SSH keys") || first.block["enabled"] != true {
		t.Errorf("%v\n%s", first.block, first.said)
	}
	// In a new session with the printed settings all of it works, except
	// reading keys.
	var block harness.Sandbox
	data, err := json.Marshal(first.block)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &block); err != nil {
		t.Fatal(err)
	}
	session, _, denials := s.start(harness.Settings(block), nil).tool("sh", "-c", line)
	_, keys := find(denials, "read", filepath.Join(s.Home, ".ssh", "id"))
	if out := session.Output(); harness.Read(t, s.OutsidePath("made/new")) != "x\n" ||
		!strings.Contains(out, "data 5\none\nbefore\n") || keys != 1 || len(denials) > 1 ||
		strings.Contains(out, "secret") {
		t.Errorf("denials %+v:\n%s", denials, out)
	}
	// Learning again adds nothing.
	if again := s.learn(harness.Settings(block), "sh", "-c", line); again.text != first.text || again.status != 0 {
		t.Errorf("status %d, learnt\n%s\nafter\n%s", again.status, again.text, first.text)
	}
}

// A file that exists stays as it is, and the command does not run.
func TestLearnReplacesNoFile(t *testing.T) {
	t.Parallel()
	s := newObservedScene(t)
	settings := harness.Settings(nil)
	file, ran := filepath.Join(s.Home, "settings.json"), filepath.Join(s.Project, "ran")
	harness.Write(t, file, "mine")
	out, err := s.execute(settings, "learn", "-o", file, "--", "touch", ran).CombinedOutput()
	if err == nil || !strings.Contains(harness.Unfold(string(out)), "learn replaces no file") {
		t.Errorf("%v: %s", err, out)
	}
	if got := harness.Read(t, file); got != "mine" {
		t.Errorf("the file holds %q", got)
	}
	if _, err := os.Stat(ran); err == nil {
		t.Error("the command has run")
	}
	harness.Must(t, os.Remove(file)) // the control
	if out, err := s.execute(settings, "learn", "-o", file, "--", "touch", ran).CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
	if got := harness.Read(t, file); !strings.Contains(got, `"sandbox"`) {
		t.Errorf("the file holds %q", got)
	}
}

// A tool that makes its cache in a new home needs its toolchain, not the home.
func TestLearnKnowsWhichToolMakesACache(t *testing.T) {
	t.Parallel()
	s := newObservedScene(t)
	s.start(harness.Settings(nil), nil)
	tool := filepath.Join(s.Project, "go")                         // known by its name alone
	harness.Must(t, os.RemoveAll(filepath.Join(s.Home, ".cache"))) // a sidecar has made it for overlays
	harness.Victim(t, "tests/victim", tool)
	l := s.learn(harness.Settings(nil), tool, "make-many", filepath.Join(s.Home, ".cache"), "1")
	if l.status == 0 || len(l.list("toolchains")) > 0 {
		t.Errorf("a name that is on no way to a cache: status %d, %v\n%s", l.status, l.block, l.said)
	}
	l = s.learn(harness.Settings(nil), "sh", "-c", "mkdir ~/.cache")
	if len(l.list("toolchains")) > 0 {
		t.Errorf("a program that is no tool's: %v", l.block)
	}
	l = s.learn(harness.Settings(nil), "bash", "-c", "exec -a go "+tool+" mkdir "+filepath.Join(s.Home, ".cache"))
	if !slices.Equal(l.list("toolchains"), []string{"go"}) || len(l.list("additional_read_write_paths")) > 0 {
		t.Errorf("%v\n%s", l.block, l.said)
	}
}

// While it learns, a program can read everything but change nothing outside.
// Without learn, each of these attempts has its effect. All are made by one program.
func TestLearnLetsNothingBeChangedOutside(t *testing.T) {
	t.Parallel()
	s := newObservedScene(t)
	sleeper := exec.Command("sleep", "300")
	if err := sleeper.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = sleeper.Process.Kill(), sleeper.Wait() })
	dir := harness.ShortDir(t)
	ended := func() bool { return !harness.Alive(sleeper.Process.Pid) }
	content := func(name, want string) func() bool {
		return func() bool { return harness.Read(s.T, s.OutsidePath(name)) == want }
	}
	there := func(name string) func() bool {
		return func() bool { _, err := os.Lstat(s.OutsidePath(name)); return err == nil }
	}
	not := func(is func() bool) func() bool { return func() bool { return !is() } }
	attacks := []struct {
		name, line string
		effect     func() bool
	}{
		{"write", "echo changed >OUT/write", content("write", "changed\n")},
		{
			"append by a descriptor that was read from",
			"exec 3<OUT/append && cat <&3 && echo changed >>/proc/self/fd/3", content("append", "old\nchanged\n"),
		},
		{"truncate", "truncate -s 0 OUT/truncate", content("truncate", "")},
		{"create", ": >OUT/create", there("create")},
		{"create from a directory that was listed", "cd OUT && ls && : >listed", there("listed")},
		{"make a directory", "mkdir OUT/dir", there("dir")},
		{"make a symlink", "ln -s /etc OUT/symlink", there("symlink")},
		{"make a hard link", "ln OUT/read OUT/link", there("link")},
		{"link in", "ln OUT/in . && echo changed >in", content("in", "changed\n")},
		{"remove", "rm -f OUT/remove", not(there("remove"))},
		{"rename", "mv -f OUT/rename OUT/renamed", there("renamed")},
		{"bind a socket", "python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind(\"DIR/bound\")'", func() bool {
			_, err := os.Lstat(filepath.Join(dir, "bound"))
			return err == nil
		}},
		{"signal", fmt.Sprintf("kill -KILL %d", sleeper.Process.Pid), ended}, // last, because it works only once
	}
	for _, name := range strings.Fields("read write append truncate in remove rename") {
		harness.Write(t, s.OutsidePath(name), "old\n")
	}
	var learning, control strings.Builder
	for _, attack := range attacks {
		line := strings.NewReplacer("OUT", s.Outside, "DIR", dir).Replace(attack.line)
		fmt.Fprintf(&learning, "echo 'to %s'; (cat %s && %s)\n", attack.name, s.OutsidePath("read"), line)
		fmt.Fprintf(&control, "(%s) || echo 'failed: %s'\n", line, attack.name)
	}
	l := s.learn(harness.Settings(nil), "sh", "-c", learning.String())
	for _, attack := range attacks {
		if !strings.Contains(l.said, "to "+attack.name+"\nold\n") {
			t.Errorf("%s: what it reads must be let through:\n%s", attack.name, l.said)
		}
		if attack.effect() {
			t.Errorf("%s: it has its effect while it is learnt:\n%s", attack.name, l.said)
		}
	}
	out, err := s.execute(harness.Off(), "exec", "--", "sh", "-c", control.String()).CombinedOutput()
	for _, attack := range attacks {
		if err != nil || strings.Contains(string(out), "failed: "+attack.name+"\n") {
			t.Errorf("%s: control: %v: %s", attack.name, err, out)
		}
		harness.Eventually(t, attack.name+" works without a sandbox", attack.effect)
	}
}

// While it learns, nothing known to be a secret is read, nor granted: by its own
// name, by a link to it, and in a directory of which all else is read.
func TestLearnReadsNoSecret(t *testing.T) {
	t.Parallel()
	s := newObservedScene(t)
	secrets := []string{
		".kube/config", ".docker/config.json", ".codex/auth.json", ".aws/credentials", ".netrc", ".config/gh/hosts.yml",
		"work/key",
	}
	for _, name := range secrets {
		harness.Write(t, filepath.Join(s.Home, name), "hunter2 of "+name+"\n")
	}
	harness.MakeDir(t, filepath.Join(s.Home, ".ssh"))
	for link, target := range map[string]string{".ssh/id_work": "../work/key", "way": ".kube/config"} {
		harness.Must(t, os.Symlink(target, filepath.Join(s.Home, link)))
	}
	for i := range 6 {
		harness.Write(t, filepath.Join(s.Home, "work", fmt.Sprint(i)), "plain\n")
	}
	line := fmt.Sprintf("cd %s; cat %s way; cat work/0 work/1 work/2 work/3 work/4 work/5", s.Home,
		strings.Join(secrets, " "))
	l := s.learn(harness.Settings(nil), "sh", "-c", line)
	if strings.Contains(l.said, "hunter2") {
		harness.Breach(t, "a secret was read: %s", l.said)
	}
	if !strings.Contains(l.said, "plain") {
		t.Errorf("control: nothing was read: %s", l.said)
	}
	var block harness.Sandbox
	data, err := json.Marshal(l.block)
	harness.Must(t, err)
	harness.Must(t, json.Unmarshal(data, &block))
	session, _, _ := s.start(harness.Settings(block), nil).tool("sh", "-c", line)
	if strings.Contains(session.Output(), "hunter2") {
		harness.Breach(t, "what was learnt opens a secret: %v: %s", l.block, session.Output())
	}
}
