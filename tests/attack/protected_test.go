//go:build linux

package attack

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// Attacks on files that programs outside obey without asking: git's hooks and
// configuration, editors' settings, the sandbox's own. Each is a line for a
// shell. It has worked if "evil" can be read where it must not be.

// git runs a command of the test's own preparations.
func git(t testing.TB, dir string, args ...string) {
	t.Helper()
	command := exec.Command("git", args...)
	command.Dir = dir
	command.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=/nonexistent", "GIT_CONFIG_NOSYSTEM=1", "GIT_AUTHOR_NAME=a",
		"GIT_AUTHOR_EMAIL=a@b", "GIT_COMMITTER_NAME=a",
		"GIT_COMMITTER_EMAIL=a@b", "GIT_ALLOW_PROTOCOL=file",
	}
	if out, err := command.CombinedOutput(); err != nil {
		t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// withRepository makes the project a repository with one commit.
func withRepository(s *scene) {
	git(s.T, s.Project, "init", "-q", ".")
	git(s.T, s.Project, "commit", "-q", "--allow-empty", "-m", "first")
}

// withWorktree makes the project a linked worktree of a repository outside that
// has another worktree too.
func withWorktree(s *scene) {
	git(s.T, s.Outside, "init", "-q", "main")
	git(s.T, s.OutsidePath("main"), "commit", "-q", "--allow-empty", "-m", "first")
	harness.Must(s.T, os.Rename(s.Project, s.Project+".kept"))
	git(s.T, s.OutsidePath("main"), "worktree", "add", "-q", s.Project)
	git(s.T, s.OutsidePath("main"), "worktree", "add", "-q", s.OutsidePath("other"))
	harness.Must(s.T, os.Rename(s.Project+".kept/victim", s.Victim))
}

// withSettings gives the project settings of editors and of the sandbox.
func withSettings(s *scene) {
	withRepository(s)
	harness.Write(s.T, s.ProjectPath(".zed/settings.json"), "{}")
	harness.Write(s.T, s.ProjectPath(".vscode/settings.json"), "{}")
	harness.Write(s.T, s.ProjectPath(".envrc"), "")
}

var protectedAttacks = []struct {
	name    string
	prepare func(s *scene)
	line    string
	harm    string // relative to the project
	// words of the error, alternatives between bars: a process that may not
	// write the directory above is refused for that
	refusal string
}{
	{
		"a hook is written", withRepository, `echo evil >.git/hooks/pre-commit`, ".git/hooks/pre-commit",
		"Read-only file system",
	},
	{"an empty hook is made", withRepository, `: >.git/hooks/pre-push`, ".git/hooks/pre-push", "Read-only file system"},
	{
		"a hook is linked", withRepository, `echo evil >tool; ln -s ../../tool .git/hooks/pre-push`,
		".git/hooks/pre-push", "Operation not permitted", // git outside would follow any symlink there
	},
	{
		"a sample becomes a hook", withRepository, `mv .git/hooks/pre-push.sample .git/hooks/pre-push`,
		".git/hooks/pre-push", "Read-only file system",
	},
	{
		"the hooks are exchanged", withRepository,
		`mkdir h && echo evil >h/pre-commit && mv .git/hooks .git/old && mv h .git/hooks`, ".git/hooks/pre-commit",
		"Device or resource busy",
	},
	{
		"the configuration is appended to", withRepository, `printf '[core]\n\tfsmonitor = evil\n' >>.git/config`,
		".git/config", "Read-only file system",
	},
	{
		"the configuration is replaced", withRepository, `echo evil >c && mv -f c .git/config`, ".git/config",
		"Device or resource busy",
	},
	{
		"the configuration is removed", withRepository, `rm -f .git/config && echo evil >.git/config`, ".git/config",
		"Device or resource busy",
	},
	{
		"the configuration is linked over", withRepository, `echo evil >c && ln -f c .git/config`, ".git/config",
		"Invalid cross-device link",
	},
	{
		"the configuration is linked away", withRepository, `ln .git/config c && echo evil >>c`, ".git/config",
		"Invalid cross-device link",
	},
	{
		"git sets the configuration", withRepository, `git config core.fsmonitor evil`, ".git/config",
		"Operation not permitted",
	},
	{
		"the repository is renamed", withRepository, `mv .git .g && cp -r .g .git && echo evil >>.git/config`,
		".git/config", "Device or resource busy",
	},
	{
		"the repository is renamed, by copying", withRepository,
		`cp -r .git .g && rm -rf .git; mv .g .git && echo evil >>.git/config`, ".git/config", "Device or resource busy",
	},
	{
		"the project is renamed", withRepository,
		`cd .. && cp -r project p && mv project q && mv p project && echo evil >>project/.git/config`, ".git/config",
		"Device or resource busy|Permission denied|Read-only file system",
	},
	{
		"what holds the project is renamed", withRepository,
		`cd ../.. && n=$(basename "$OLDPWD/.."); d=$(basename "$(dirname "$OLDPWD")"); cp -r "$d" c && mv "$d" m && mv ` +
			`c "$d" && echo evil >>"$d/project/.git/config"`, ".git/config",
		"Device or resource busy|Permission denied|Read-only file system",
	},
	{
		"another namespace", withRepository, `unshare -rm sh -c 'umount .git/config; echo evil >>.git/config'`,
		".git/config", "Operation not permitted",
	},
	{
		"by the mounts of the sidecar", withRepository, `echo evil >>/proc/$PPID/root"$PWD"/.git/config`, ".git/config",
		"Permission denied|Directory nonexistent", // with hidepid; the sidecar runs, since it reports the end
	},
	{
		"by a descriptor of its own", withRepository, `exec 3<.git/config && echo evil >/proc/self/fd/3`, ".git/config",
		"Read-only file system",
	},
	{
		"by its own root", withRepository, `echo evil >>/proc/self/root"$PWD"/.git/config`, ".git/config",
		"Read-only file system",
	},
	{
		"settings of the sandbox", withSettings, `echo evil >.zed/settings.json`, ".zed/settings.json",
		"Read-only file system",
	},
	{
		"settings of the sandbox, by renaming", withSettings,
		`mv .zed .z; mkdir -p .zed; echo evil >.zed/settings.json`,
		".zed/settings.json", "Device or resource busy",
	},
	{
		"tasks of an editor, that did not exist", withSettings, `echo evil >.vscode/tasks.json`, ".vscode/tasks.json",
		"Read-only file system",
	},
	{
		"a directory of settings is removed", withSettings,
		`rm -rf .vscode; mkdir .vscode && echo evil >.vscode/tasks.json`,
		".vscode/tasks.json", "Read-only file system",
	},
	{"what direnv runs", withSettings, `echo evil >.envrc`, ".envrc", "Read-only file system"},
	{
		"the mode of what direnv runs", withSettings, `chmod 777 .envrc && echo evil >.envrc`, ".envrc",
		"Read-only file system",
	},
	{"a worktree's pointer", withWorktree, `echo "gitdir: evil" >.git`, ".git", "Read-only file system"},
	{
		"a worktree's pointer, by renaming", withWorktree, `echo "gitdir: evil" >g && mv -f g .git`, ".git",
		"Device or resource busy",
	},
	{
		"the hooks of a worktree's repository", withWorktree,
		`echo evil >"$(git rev-parse --git-common-dir)/hooks/pre-commit"`, "../outside/main/.git/hooks/pre-commit",
		"Read-only file system",
	},
	{
		"the configuration of a worktree's repository", withWorktree, `git config core.fsmonitor evil`,
		"../outside/main/.git/config", "Operation not permitted",
	},
	{
		"where a worktree's configuration is", withWorktree, `echo evil >"$(git rev-parse --git-dir)/commondir"`,
		"../outside/main/.git/worktrees/project/commondir", "Read-only file system",
	},
	{
		"where another worktree's configuration is", withWorktree,
		`echo evil >"$(git rev-parse --git-common-dir)/worktrees/other/commondir"`,
		"../outside/main/.git/worktrees/other/commondir", "Read-only file system",
	},
}

// Without a sandbox each works. In one the kernel refuses it because of the
// mount.
func TestProtectedPathsStayAsTheyAre(t *testing.T) {
	t.Parallel()
	harness.Require(t, "protected_paths")
	for _, attack := range protectedAttacks {
		t.Run(attack.name, func(t *testing.T) {
			t.Parallel()
			try := func(settings string) (harm bool, output string, status int, reply protocol.SpawnResult) {
				s := newScene(t)
				attack.prepare(s)
				target := filepath.Join(s.Project, attack.harm)
				existed, before := exists(target), harness.Read(t, target)
				session := s.Start(settings).Spawn(protocol.SpawnParams{
					Kind: protocol.Tool, Command: "/bin/sh",
					Args: []string{"-c", attack.line},
				})
				status = -1
				if exit := session.Exit(); exit.ExitCode != nil {
					status = *exit.ExitCode
				}
				return exists(target) != existed || harness.Read(t, target) != before, session.Output(), status,
					session.SpawnResult
			}
			if harm, output, status, _ := try(harness.Off()); !harm {
				t.Fatalf("control: without a sandbox it must work: status %d\n%s", status, output)
			}
			harm, output, status, reply := try(harness.Defaults(nil))
			if harm {
				harness.Breach(t, "THE ATTACK WORKS: status %d\n%s", status, output)
			}
			if !slices.ContainsFunc(strings.Split(attack.refusal, "|"), func(words string) bool {
				return strings.Contains(output, words)
			}) {
				t.Errorf("want a refusal with %q: status %d\n%s", attack.refusal, status, output)
			}
			if p := reply.Sandbox.Protections["protected_paths"]; !strings.Contains(p.Mechanism, "mount namespace") {
				t.Errorf("%+v", p)
			}
		})
	}
}

// Replaces the sidecar's own program, which lies in the project as it does for
// those who develop it, or the one beside it that it runs. The next start would
// run the session's file.
func TestTheSidecarsOwnProgramCannotBeReplaced(t *testing.T) {
	t.Parallel()
	harness.Require(t, "protected_paths")
	for name, try := range map[string]struct{ line, refusal string }{
		"overwritten":       {"cp /bin/true bin/sandbox-sidecar", "Read-only file system"},
		"replaced":          {"cp /bin/true other; mv -f other bin/sandbox-sidecar", "busy"},
		"removed":           {"rm -f bin/sandbox-sidecar", "busy"},
		"directory renamed": {"mv bin old; mkdir bin; cp /bin/true bin/sandbox-sidecar", "busy"},
		"mcp overwritten":   {"cp /bin/true bin/sandbox-sidecar-mcp", "Read-only file system"},
		"mcp replaced":      {"cp /bin/true other; mv -f other bin/sandbox-sidecar-mcp", "busy"},
		"mcp removed":       {"rm -f bin/sandbox-sidecar-mcp", "busy"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run := func(settings string) (output string, changed bool) {
				s := newScene(t)
				program := s.ProjectPath("bin/sandbox-sidecar")
				harness.MakeDir(t, filepath.Dir(program))
				before, err := os.ReadFile(harness.Binary(t))
				harness.Must(t, err)
				harness.CopyProgram(t, harness.Binary(t), program)
				beside := program + "-mcp"
				harness.Write(t, beside, "beside")
				e := harness.Start(t, s.World, harness.Options{Settings: settings, Wrap: func(command *exec.Cmd) {
					command.Path = program
				}})
				for _, warning := range s.attempt(e, "privileges").reply.Sandbox.Warnings {
					if strings.Contains(warning, program) {
						t.Errorf("a warning of what cannot happen: %s", warning)
					}
				}
				output, _ = e.Tool(try.line)
				after, err := os.ReadFile(program)
				text, missing := os.ReadFile(beside)
				return output, err != nil || !slices.Equal(before, after) || missing != nil || string(text) != "beside"
			}
			// A program that runs cannot be written, but it can be replaced.
			if output, changed := run(harness.Off()); !changed && name != "overwritten" {
				t.Fatalf("control: without a sandbox the attack must work:\n%s", output)
			}
			if output, changed := run(harness.Settings(nil)); changed || !strings.Contains(output, try.refusal) {
				harness.Breach(t, "THE ATTACK WORKS: %t\n%s", changed, output)
			}
		})
	}
}
