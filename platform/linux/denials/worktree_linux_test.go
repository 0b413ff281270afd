package denials

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
)

func TestAddsWorktree_GoesByTheCommandLine(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]bool{
		"git worktree add x":                  true,
		"/usr/bin/git -C a worktree add -b x": true,
		"git -c a=b worktree add":             true,
		"git worktree list":                   false,
		"git worktree":                        false,
		"git add worktree":                    false,
		"git reset --hard":                    false,
		"sh worktree add":                     false,
		"":                                    false,
	} {
		var argv [][]byte
		for _, word := range strings.Fields(line) {
			argv = append(argv, []byte(word))
		}
		if got := addsWorktree(argv); got != want {
			t.Errorf("%q: %t", line, got)
		}
	}
}

// Real processes: the one that makes the working tree, and one that it has started.
func TestWorktreeOf_LooksAtTheParentToo(t *testing.T) {
	t.Parallel()
	o := &Observer{options: Options{Policy: &policy.Policy{GitDirs: []string{"/p/.git"}}}}
	const waits = "echo $$; read x; :"
	for _, test := range []struct {
		argv   []string
		target string
		want   platform.Worktree
	}{
		{[]string{"git", "-c", waits, "worktree", "add"}, "/p/y", platform.WorktreePlace},
		{[]string{"git", "-c", waits, "worktree", "add"}, "/p/.git/worktrees/y", platform.WorktreeContent},
		{[]string{"git", "-c", "/bin/sh -c '" + waits + "'; :", "worktree", "add"}, "/p/y/x", platform.WorktreeContent},
		{[]string{"git", "-c", waits, "merge", "x"}, "/p/y", ""},
		{[]string{"sh", "-c", waits, "worktree", "add"}, "/p/y", ""},
	} {
		if got := o.worktreeOf(startShell(t, test.argv), test.target); got != test.want {
			t.Errorf("%q, %s: %q, want %q", test.argv, test.target, got, test.want)
		}
	}
	if got := o.worktreeOf(1<<30, "/p/y"); got != "" {
		t.Errorf("no process: %q", got)
	}
}

// startShell runs a script by a shell of any name. It returns the process id that
// the script prints, and ends the script with the test.
func startShell(t *testing.T, argv []string) int {
	t.Helper()
	command := exec.Command("/bin/sh")
	command.Args = argv
	in, err := command.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = in.Close()
		_ = command.Wait()
	})
	var pid int
	if _, err := fmt.Fscan(out, &pid); err != nil {
		t.Fatal(err)
	}
	return pid
}
