package effects

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/sandbox-sidecar/sandbox-sidecar/fsguard"
	"github.com/sandbox-sidecar/sandbox-sidecar/lifecycle/proc"
)

// The bounds of what git is asked when a session ends.
const (
	maxOutput  = 8 << 20
	maxTips    = 256    // objects that are new in refs
	maxKnown   = 4096   // objects that refs had before
	maxCommits = 20_000 // new commits
	maxBases   = 16     // commits that a new one is compared with
)

// maxTime bounds all questions at the end of one session. Tests have more.
var maxTime = 2 * time.Second

var (
	errNoGit = errors.New("git is not installed in a directory of the system")
	errLate  = errors.New("git took too long")
	errMuch  = errors.New("git said too much")
	errShort = errors.New("git said too little")
)

// asker asks git about one repository.
type asker struct {
	program string
	dir     string // GIT_DIR
	end     time.Time
	stop    <-chan struct{} // ends all questions early
}

// safe are options under which git runs no program, whatever the repository's
// configuration says, and believes no file that a session may have forged to
// hide a commit.
var safe = []string{
	"--no-pager", "--no-replace-objects", "--literal-pathspecs",
	"-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "-c", "core.commitGraph=false",
	"-c", "core.untrackedCache=false", "-c", "protocol.allow=never", "-c", "core.quotePath=false",
	"-c", "diff.external=", "-c", "log.showSignature=false",
}

// environ is all that git gets. GIT_GRAFT_FILE: a session could write a graft
// that makes a new commit the parent of an old one. GIT_ALLOC_LIMIT: a commit of
// some MiB may be as many GiB when it is read.
func (a asker) environ() []string {
	return []string{
		"GIT_DIR=" + a.dir, "PATH=/usr/bin:/bin", "HOME=/nonexistent", "LC_ALL=C",
		"GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_ATTR_NOSYSTEM=1",
		"GIT_NO_LAZY_FETCH=1", "GIT_ALLOW_PROTOCOL=none", "GIT_NO_REPLACE_OBJECTS=1", "GIT_GRAFT_FILE=/dev/null",
		"GIT_ALLOC_LIMIT=256m", "GIT_OPTIONAL_LOCKS=0", "GIT_TERMINAL_PROMPT=0", "GIT_ASKPASS=true", "GIT_PAGER=cat",
		"GIT_TRACE=0", "GIT_TRACE_SETUP=0", "GIT_TRACE2=0", "GIT_TRACE2_EVENT=0", "GIT_TRACE2_PERF=0",
	}
}

// stopped reports whether a channel is closed.
func stopped(stop <-chan struct{}) bool {
	select {
	case <-stop:
		return true
	default:
		return false
	}
}

// asker finds git.
func (c *comparison) asker() (asker, error) {
	dir := c.repository
	if strings.ContainsRune(dir, 0) || !fsguard.Local(dir) {
		return asker{}, errors.New("git is not asked on this file system")
	}
	for _, path := range c.programs {
		info, err := fsguard.Stat(path)
		if err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return asker{path, dir, c.end, c.stop}, nil
		}
	}
	return asker{}, errNoGit
}

// run runs git with a text as its input, and returns what it prints. It waits no
// longer than until the end or the stop, and reads no more than maxOutput.
func (a asker) run(input string, args ...string) (string, error) {
	if time.Now().After(a.end) || stopped(a.stop) {
		return "", errLate
	}
	stdin, in, err := os.Pipe()
	if err != nil {
		return "", err
	}
	defer in.Close()
	out, stdout, err := os.Pipe()
	if err != nil {
		_ = stdin.Close()
		return "", err
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		_, _, _ = stdin.Close(), out.Close(), stdout.Close()
		return "", err
	}
	process, err := proc.Start(a.program, append(append([]string{"git"}, safe...), args...),
		&os.ProcAttr{Dir: "/", Env: a.environ(), Files: []*os.File{stdin, stdout, null}})
	_, _, _ = stdin.Close(), stdout.Close(), null.Close()
	if err != nil {
		_ = out.Close()
		return "", err
	}
	go func() {
		_, _ = io.WriteString(in, input) // a git that ends early does not read it
		_ = in.Close()
	}()
	type result struct {
		text string
		err  error
	}
	done := make(chan result, 1)
	go func() {
		var text bytes.Buffer
		n, err := io.Copy(&text, io.LimitReader(out, maxOutput+1))
		_ = out.Close() // a git that prints more gets SIGPIPE
		status, failed := process.Wait(false)
		switch {
		case n > maxOutput:
			err = errMuch
		case err == nil && failed == nil && status.ExitStatus() != 0:
			err = fmt.Errorf("git %s: exit status %d", args[0], status.ExitStatus())
		}
		done <- result{text.String(), errors.Join(err, failed)}
	}()
	timer := time.NewTimer(time.Until(a.end))
	defer timer.Stop()
	select {
	case r := <-done:
		return r.text, r.err
	case <-timer.C:
	case <-a.stop:
	}
	// A process that a file system holds ends later; nobody waits for it.
	_ = process.Signal(syscall.SIGKILL)
	return "", errLate
}
