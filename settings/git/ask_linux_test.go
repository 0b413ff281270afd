package git

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/settings/resolve"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// asked is a home with a project, and what the installed git says there, however
// long a busy machine takes.
func asked(t *testing.T, config string) (a *Asker, host resolve.Host, project string) {
	t.Helper()
	if _, err := os.Stat("/usr/bin/git"); err != nil {
		harness.Skip(t, "git", err.Error())
	}
	home := t.TempDir()
	project = filepath.Join(home, "project")
	if out, err := exec.Command("/usr/bin/git", "init", "-q", project).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	write(t, filepath.Join(project, ".git", "config"), config)
	a = &Asker{timeout: harness.Timeout}
	return a, resolve.Host{Platform: "linux", Home: home, Env: map[string]string{}}, project
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func hooksOf(answer Answer) []string {
	var list []string
	for _, one := range answer {
		if one.entry.Key == "core.hookspath" {
			list = append(list, filepath.Base(one.file)+": "+one.entry.Value)
		}
	}
	return list
}

// git's answer names each file, and is new as soon as one of them changes or
// appears.
func TestAsk_IsCurrent(t *testing.T) {
	t.Parallel()
	a, host, project := asked(t, "[core]\n\thooksPath = a\n[include]\n\tpath = more\n")
	more := filepath.Join(project, ".git", "more")
	write(t, more, "")
	check := func(want ...string) {
		t.Helper()
		for range 2 {
			if got := hooksOf(a.Ask(host, project)); !slices.Equal(got, want) {
				t.Errorf("%q, want %q", got, want)
			}
		}
	}
	check("config: a")
	write(t, filepath.Join(project, ".git", "config"), "[core]\n\thooksPath = bb\n")
	check("config: bb")
	write(t, filepath.Join(host.Home, ".gitconfig"), "[core]\n\thooksPath = c\n")
	check(".gitconfig: c", "config: bb")
	if err := os.Remove(filepath.Join(host.Home, ".gitconfig")); err != nil {
		t.Fatal(err)
	}
	check("config: bb")
}

// In a directory of the working tree git names files relative to its top.
func TestAsk_InADirectoryOfTheRepository(t *testing.T) {
	t.Parallel()
	a, host, project := asked(t, "[core]\n\thooksPath = a\n")
	dir := filepath.Join(project, "dir")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	config := filepath.Join(project, ".git", "config")
	if files := a.Ask(host, dir).files(); !slices.Contains(files, config) {
		t.Errorf("%q", files)
	}
	write(t, config, "[core]\n\thooksPath = bb\n")
	if got := hooksOf(a.Ask(host, dir)); !slices.Equal(got, []string{"config: bb"}) {
		t.Errorf("%q", got)
	}
}

// withPipe is a project whose configuration includes a FIFO. Until somebody
// replaces that, git does not end.
func withPipe(t *testing.T) (a *Asker, host resolve.Host, project, pipe string) {
	t.Helper()
	a, host, project = asked(t, "[core]\n\thooksPath = a\n[include]\n\tpath = pipe\n")
	a.timeout = askTimeout
	pipe = filepath.Join(project, ".git", "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	if answer := a.Ask(host, project); answer != nil {
		t.Errorf("an answer: %v", answer)
	}
	return a, host, project, pipe
}

func awaitEnd(t *testing.T, a *Asker, project string) {
	t.Helper()
	harness.Eventually(t, "the killed git has ended", func() bool {
		a.mu.Lock()
		defer a.mu.Unlock()
		return !a.hung[project]
	})
}

// Nobody waits for a git that does not end, and it is not started again at once,
// even if it would end now.
func TestAsk_GivesUp(t *testing.T) {
	t.Parallel()
	a, host, project, pipe := withPipe(t)
	awaitEnd(t, a, project)
	if err := os.Remove(pipe); err != nil {
		t.Fatal(err)
	}
	a.timeout = harness.Timeout
	if answer := a.Ask(host, project); answer != nil {
		t.Errorf("git was asked again: %v", answer)
	}
	late := a.kept[project]
	late.asked = late.asked.Add(-askAgain)
	a.kept[project] = late
	if got := hooksOf(a.Ask(host, project)); !slices.Equal(got, []string{"config: a"}) {
		t.Errorf("later: %q", got)
	}
}

// While a git that was killed has not ended, no other is started beside it.
func TestAsk_StartsNoSecondWhileOneHangs(t *testing.T) {
	t.Parallel()
	a, host, project := asked(t, "[core]\n\thooksPath = a\n")
	a.setHung(project, true)
	if answer := a.Ask(host, project); answer != nil {
		t.Errorf("git was asked: %v", answer)
	}
	a.setHung(project, false)
	if got := hooksOf(a.Ask(host, project)); !slices.Equal(got, []string{"config: a"}) {
		t.Errorf("after its end: %q", got)
	}
}

// What took too long is known as hung until its process has ended.
func TestAsk_KnowsWhenAKilledGitHasEnded(t *testing.T) {
	t.Parallel()
	a, _, project, _ := withPipe(t)
	awaitEnd(t, a, project)
}

// The repository makes git run nothing.
func TestAsk_RunsNothing(t *testing.T) {
	t.Parallel()
	a, host, project := asked(t, "")
	mark := filepath.Join(host.Home, "ran")
	command := "\"touch " + mark + "\"\n"
	write(t, filepath.Join(project, ".git", "config"), "[core]\n\tfsmonitor = "+command+"\tpager = "+command+
		"\teditor = "+command+"[alias]\n\tconfig = \"!touch "+mark+"\"\n[pager]\n\tconfig = "+command)
	if len(a.Ask(host, project)) == 0 {
		t.Error("no answer")
	}
	if _, err := os.Stat(mark); err == nil {
		t.Error("the repository's command ran")
	}
}

func BenchmarkAsk(b *testing.B) {
	project, err := os.Getwd()
	if err != nil {
		b.Fatal(err)
	}
	host := resolve.Host{Platform: "linux", Home: os.Getenv("HOME"), Env: map[string]string{}}
	b.Run("new", func(b *testing.B) {
		for b.Loop() {
			(&Asker{}).Ask(host, project)
		}
	})
	b.Run("kept", func(b *testing.B) {
		a := &Asker{}
		for b.Loop() {
			a.Ask(host, project)
		}
	})
}
