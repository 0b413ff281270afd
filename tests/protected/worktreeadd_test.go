//go:build linux

package protected

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// What the report of a refused "git worktree add" says, and of one that an agent
// prepares.
const (
	worktreeElsewhere = `git may have made the branch: "git worktree add tree BRANCH" in the project, or ` +
		`make one outside`
	worktreeOutside = `if you trust it, outside: "git worktree add PATH BRANCH"; git may have made the branch`
	agentsWorktree  = `make it elsewhere in the project, as with "git worktree add tree", or outside and open that`
)

// refusedTree is a working tree that a session tries to make as the branch y.
type refusedTree struct {
	name, at string
	// bare: the agent has no directory in the project yet.
	bare bool
	// line makes it; "" for git worktree add.
	line string
	// refused is the path that is refused, with what is below it.
	refused string
	// keys are settings beside the default ones.
	keys harness.Sandbox
	hint string
	// inside: what the hint says works in a session, too.
	inside bool
}

var refusedTrees = []refusedTree{
	{name: "beside the project", at: "../y", refused: "../y", hint: worktreeElsewhere, inside: true},
	{
		name: "where an agent keeps its own", at: ".claude/worktrees/y", refused: ".claude", hint: worktreeElsewhere,
		inside: true,
	},
	{
		name: "where an agent would keep its own", at: ".claude/worktrees/y", refused: ".claude", bare: true,
		hint: worktreeElsewhere, inside: true,
	},
	{
		name: "where an agent makes the directory", at: ".claude/worktrees/y", refused: ".claude/worktrees",
		line: "mkdir .claude/worktrees && git worktree add -q -b y .claude/worktrees/y",
		hint: agentsWorktree, inside: true,
	},
	{
		name: "with a file that is protected at any depth", at: "tree2/y", refused: "tree2/y",
		keys: harness.Sandbox{"protected_paths": []string{"**/.envrc"}}, hint: worktreeOutside,
	},
}

// A session makes no working tree beside its project, none where an agent keeps its
// own, and none with a file that is protected there. The report names a step, which
// works and touches nothing that the user has changed.
func TestAWorktreeThatIsNotMadeInside(t *testing.T) {
	t.Parallel()
	harness.Require(t, "protected_paths")
	requireObserver(t)
	for _, test := range refusedTrees {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			line := test.line
			if line == "" {
				line = "git worktree add -q -b y " + test.at
			}
			try := func(settings string) (s *scene, e *editor, made bool, output string) {
				s = newScene(t)
				s.worktrees(worktreeKind{at: "../x"})
				harness.Write(t, s.ProjectPath(".envrc"), "echo hello\n")
				s.git(s.Project, "add", ".envrc")
				s.git(s.Project, "commit", "-q", "-m", "variables")
				if test.bare {
					harness.Must(t, os.RemoveAll(s.ProjectPath(".claude")))
				}
				harness.Write(t, s.ProjectPath("mine"), "not tracked\n")
				e = s.start(settings, harness.Machine{})
				_, output, _, _ = e.run(line)
				_, err := os.Lstat(s.ProjectPath(test.at + "/file"))
				return s, e, err == nil, output
			}
			if _, _, made, output := try(harness.Off()); !made {
				t.Fatalf("control: without a sandbox it is not made: %s", output)
			}
			s, e, made, output := try(harness.Defaults(test.keys))
			if made {
				harness.Breach(t, "it was made: %s", output)
			}
			harness.Eventually(t, "it is reported", func() bool {
				return slices.ContainsFunc(e.denials.All(), func(d protocol.DeniedParams) bool {
					return within(s.ProjectPath(test.refused), d.Target) && d.Hint == test.hint && d.Suggestion == nil
				})
			})
			mine := s.ProjectPath("mine")
			s.steps(e, test)
			if left := harness.Read(t, mine); left != "not tracked\n" {
				t.Errorf("what the user has changed: %q", left)
			}
		})
	}
}

// steps does what a report says, inside and outside.
func (s *scene) steps(e *editor, test refusedTree) {
	t := s.T
	t.Helper()
	branch := " y"
	if test.line != "" { // git was not started
		branch = ""
	}
	if test.inside {
		_, output, status, _ := e.run("git worktree add -q tree" + branch +
			" && git -C tree commit -q --allow-empty -m one")
		if status != 0 {
			t.Errorf("inside: status %d: %s", status, output)
		}
		s.git(s.Project, "worktree", "remove", "--force", "tree")
	}
	if branch != "" {
		command := exec.Command("git", "worktree", "add", "-q", "-b", "y", test.at)
		command.Dir, command.Env = s.Project, harness.Environ(s.World)
		if out, err := command.CombinedOutput(); err == nil || !strings.Contains(string(out), "already exists") {
			t.Errorf("control: the same again works outside: %v: %s", err, out)
		}
	}
	args := append([]string{"worktree", "add", "-q", test.at}, strings.Fields(branch)...)
	s.git(s.Project, args...)
	// It is opened: a session works there.
	s.Project = s.ProjectPath(test.at)
	opened := s.start(harness.Defaults(test.keys), harness.Machine{})
	_, output, status, _ := opened.run("git commit -q --allow-empty -m two && git log --oneline | grep -q two")
	if status != 0 {
		t.Errorf("a session in it: status %d: %s", status, output)
	}
}
