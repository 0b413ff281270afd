//go:build unix

package git

import (
	"bytes"
	"cmp"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/sandbox-sidecar/sandbox-sidecar/fsguard"
	"github.com/sandbox-sidecar/sandbox-sidecar/lifecycle/proc"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/resolve"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/textfile"
)

// Asker asks the installed git about its configuration, and keeps the answers
// while they are current. Its methods may be called from several goroutines.
type Asker struct {
	// timeout bounds how long Ask waits for git; 0: askTimeout.
	timeout time.Duration

	mu   sync.Mutex // guards the fields below
	kept map[string]kept
	hung map[string]bool // the directories in which git was killed and has not ended
	// parents are the answers about the repositories above projects.
	parents map[string]keptParent
}

// kept is an answer with the state of the files that it depends on.
type kept struct {
	answer Answer
	state  map[string]textfile.Signature
	asked  time.Time
	failed bool
}

const (
	// askTimeout bounds how long a start waits for git, which takes 2 ms.
	askTimeout = 500 * time.Millisecond
	// askAgain is the time after a failure before git is asked again.
	askAgain   = time.Minute
	maxAnswer  = 1 << 20
	maxAnswers = 64
)

// Ask returns what git says in a directory; nil if it is not installed, or does
// not answer. "git config" runs no program, hook or alias, and writes nothing.
func (a *Asker) Ask(host resolve.Host, project string) Answer {
	if a == nil || !fsguard.Local(project) || host.Home != "" && !fsguard.Local(host.Home) {
		return nil
	}
	program := installed(host)
	if program == "" {
		return nil
	}
	a.mu.Lock()
	before, found := a.kept[project]
	hung := a.hung[project]
	a.mu.Unlock()
	switch {
	case hung:
		return nil // it is held by a file system, as the next would be
	case found && before.failed && time.Since(before.asked) < askAgain:
		return nil
	case found && !before.failed && current(before):
		return before.answer
	}
	now := kept{asked: time.Now(), state: map[string]textfile.Signature{}}
	// The state is taken before git reads the files: a change in between makes
	// the answer outdated.
	likely := append(userConfigurations(host), program, filepath.Join(project, ".git"),
		filepath.Join(project, ".git", "config"), filepath.Join(project, ".git", "config.worktree"))
	for _, path := range append(likely, before.answer.files()...) {
		now.state[path] = signature(path)
	}
	out, status := a.run(program, []string{
		"git", "--no-pager", "config", "--list", "--show-origin", "--show-scope", "--includes", "-z",
	}, host, project)
	if now.failed = status != 0; now.failed {
		out = ""
	}
	now.answer = parseAnswer(func(file string) string { return above(project, file) }, out)
	for _, path := range now.answer.files() {
		if _, known := now.state[path]; !known {
			now.state[path] = signature(path)
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.kept == nil || len(a.kept) >= maxAnswers {
		a.kept = map[string]kept{}
	}
	a.kept[project] = now
	return now.answer
}

// above returns the directory that has a file, which is this one or contains it.
// git names files relative to the top of the working tree.
func above(dir, file string) string {
	for at := dir; ; at = filepath.Dir(at) {
		if _, err := fsguard.Lstat(filepath.Join(at, file)); err == nil {
			return at
		}
		if at == filepath.Dir(at) {
			return dir
		}
	}
}

// current reports whether no file has changed since git was asked. A change that
// leaves no trace is seen by the reader, which reads the files each time.
func current(k kept) bool {
	for path, state := range k.state {
		if signature(path) != state {
			return false
		}
	}
	return true
}

// signature is the state of a file; the zero value if there is none. That of a
// directory does not count: .git changes with each commit.
func signature(path string) textfile.Signature {
	info, err := fsguard.Stat(path)
	if err != nil || info.IsDir() {
		return textfile.Signature{}
	}
	return textfile.SignatureOf(info)
}

// run runs git in a directory, and returns what it prints with its exit status;
// -1 if it was killed, took too long or printed too much.
func (a *Asker) run(program string, argv []string, host resolve.Host, dir string) (out string, status int) {
	type result struct {
		out    string
		status int
	}
	done := make(chan result)
	late := make(chan struct{})
	read, write, err := os.Pipe()
	if err != nil {
		return "", -1
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		_, _ = read.Close(), write.Close()
		return "", -1
	}
	process, err := proc.Start(program, argv,
		&os.ProcAttr{Dir: dir, Env: environment(host), Files: []*os.File{null, write, null}})
	_, _ = write.Close(), null.Close()
	if err != nil {
		_ = read.Close()
		return "", -1
	}
	go func() {
		var text bytes.Buffer
		n, err := io.Copy(&text, io.LimitReader(read, maxAnswer+1))
		_ = read.Close() // a git that prints more gets SIGPIPE
		ended, failed := process.Wait(false)
		r := result{text.String(), -1}
		if err == nil && n <= maxAnswer && failed == nil {
			r.status = ended.ExitStatus()
		}
		select {
		case done <- r:
		case <-late:
			a.setHung(dir, false)
		}
	}()
	timer := time.NewTimer(cmp.Or(a.timeout, askTimeout))
	defer timer.Stop()
	select {
	case r := <-done:
		return r.out, r.status
	case <-timer.C:
		// A process that a file system holds ends later; nobody waits for it.
		a.setHung(dir, true)
		close(late)
		_ = process.Signal(syscall.SIGKILL)
		return "", -1
	}
}

func (a *Asker) setHung(dir string, hung bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !hung {
		delete(a.hung, dir)
		return
	}
	if a.hung == nil {
		a.hung = map[string]bool{}
	}
	a.hung[dir] = true
}

// environment is what git needs to find its files. Traces are off, because the
// user's configuration may send them somewhere.
func environment(host resolve.Host) []string {
	env := []string{
		"PATH=/usr/bin:/bin", "LC_ALL=C", "GIT_PAGER=cat", "GIT_TERMINAL_PROMPT=0", "GIT_OPTIONAL_LOCKS=0",
		"GIT_TRACE=0", "GIT_TRACE_SETUP=0", "GIT_TRACE2=0", "GIT_TRACE2_EVENT=0", "GIT_TRACE2_PERF=0",
	}
	for _, name := range []string{"XDG_CONFIG_HOME", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "SUDO_UID"} {
		if value, set := host.Env[name]; set {
			env = append(env, name+"="+value)
		}
	}
	if host.Home != "" {
		env = append(env, "HOME="+host.Home)
	}
	return slices.DeleteFunc(env, func(entry string) bool { return strings.ContainsRune(entry, 0) })
}
