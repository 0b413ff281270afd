//go:build linux

package protected

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// way is something that git runs outside of the sandbox after a session has
// written a file. In its line $PLANT is the text of a program that shows that
// it ran.
type way struct {
	name    string
	prepare func(s *scene)
	// line is what the session does.
	line string
	// outside is the user's plain command afterwards, in the project.
	outside string
	// reported lists what the review has to name if the line succeeds; without
	// it nothing may run.
	reported string
	// env is of the sidecar and of the user's command, with $HOME replaced.
	env []string
	// writable is a directory in the home that the user grants for writing.
	writable string
	// home: what is in the home directory matters.
	home bool
}

// configured makes a repository and adds text to its configuration.
func configured(text string) func(s *scene) {
	return func(s *scene) {
		s.repository(s.Project)
		harness.MakeDir(s.T, s.ProjectPath("tools/hooks"))
		s.append(s.ProjectPath(".git/config"), text)
	}
}

// append adds text to a file.
func (s *scene) append(file, text string) {
	s.T.Helper()
	before, _ := os.ReadFile(file)
	harness.Write(s.T, file, string(before)+text)
}

// aHook is what a session writes to the directory of hooks that git's
// configuration names.
const aHook = `printf '%s\n' "$PLANT" >tools/hooks/post-checkout; chmod +x tools/hooks/post-checkout; true`

var ways = []way{
	{
		name:    "a comment that ends in a backslash",
		prepare: configured("[core]\n\t# C:\\repo\\\n\thooksPath = tools/hooks\n"), line: aHook,
		outside: "git checkout -q -b side",
	},
	{
		name:    "a second header on one line",
		prepare: configured("[a][core] hooksPath = tools/hooks\n"), line: aHook, outside: "git checkout -q -b side",
	},
	{
		name: "a tilde in core.hooksPath", home: true,
		prepare: configured("[core] hooksPath = ~/project/tools/hooks\n"), line: aHook,
		outside: "git checkout -q -b side",
	},
	{
		name: "a tilde in include.path", home: true,
		prepare: func(s *scene) {
			configured("[include] path = ~/project/.gitmore\n")(s)
			harness.Write(s.T, s.ProjectPath(".gitmore"), "")
		},
		line: namesHooks + ">>.gitmore; " + aHook, outside: "git checkout -q -b side",
	},
	{
		name: "a tilde in includeIf", home: true,
		prepare: func(s *scene) {
			configured("")(s)
			s.append(filepath.Join(s.Home, ".gitconfig"),
				"[includeIf \"gitdir:~/project/\"] path = ~/project/.gitmore\n")
			harness.Write(s.T, s.ProjectPath(".gitmore"), "")
		},
		line: namesHooks + ">>.gitmore; " + aHook, outside: "git checkout -q -b side",
	},
	{
		name: "a symlinked ~/.gitconfig", home: true,
		prepare: func(s *scene) {
			configured("")(s)
			harness.MakeDir(s.T, s.ProjectPath("dotfiles"))
			s.link(filepath.Join(s.Home, ".gitconfig"), "project/dotfiles/gitconfig")
		},
		line: namesHooks + ">>dotfiles/gitconfig; " + aHook, outside: "git checkout -q -b side",
	},
	{
		name: "a symlinked ~/.gitconfig in a granted directory", home: true,
		prepare: func(s *scene) {
			configured("")(s)
			harness.MakeDir(s.T, filepath.Join(s.Home, "dotfiles"))
			s.link(filepath.Join(s.Home, ".gitconfig"), "dotfiles/gitconfig")
		},
		line: namesHooks + ">>../dotfiles/gitconfig; " + aHook, outside: "git checkout -q -b side",
		writable: "dotfiles",
	},
	{
		name: "a symlinked include",
		prepare: func(s *scene) {
			configured("[include] path = ../.gitmore\n")(s)
			harness.Write(s.T, s.ProjectPath(".gitmore"), "")
			s.link(s.ProjectPath(".gitmore"), "more")
		},
		line: namesHooks + ">>more; " + aHook, outside: "git checkout -q -b side",
	},
	{
		name: "an include that does not exist", prepare: configured("[include] path = ../.gitmore\n"),
		line: namesHooks + ">>.gitmore; " + aHook, outside: "git checkout -q -b side", reported: "created .gitmore",
	},
	{
		name: "a config.worktree that does not exist",
		prepare: func(s *scene) {
			configured("[extensions] worktreeConfig = true\n")(s)
			s.git(s.Project, "config", "core.repositoryformatversion", "1")
		},
		line: namesHooks + ">>.git/config.worktree; " + aHook, outside: "git checkout -q -b side",
		reported: "created .git/config.worktree",
	},
	{
		name: "$XDG_CONFIG_HOME/git/config", env: []string{"XDG_CONFIG_HOME=$HOME/settings"},
		prepare: func(s *scene) {
			userConfigured("settings/git/config")(s)
			for _, name := range []string{"zed", "sandbox-sidecar"} { // the sidecar's own settings stay in reach
				harness.MakeDir(s.T, filepath.Join(s.Home, ".config", name))
				if err := os.Symlink("../.config/"+name, filepath.Join(s.Home, "settings", name)); err != nil {
					s.T.Fatal(err)
				}
			}
		},
		line: aHook, outside: "git checkout -q -b side",
	},
	{
		name: "$GIT_CONFIG_GLOBAL", env: []string{"GIT_CONFIG_GLOBAL=$HOME/global"},
		prepare: userConfigured("global"), line: aHook, outside: "git checkout -q -b side",
	},
	{
		name: "the system's configuration", env: []string{"GIT_CONFIG_SYSTEM=$HOME/system"},
		prepare: userConfigured("system"), line: aHook, outside: "git checkout -q -b side",
	},
	{
		name: "a submodule with a monitor, five levels deep, with forged times", prepare: configured(""),
		line: `git init -q 1/2/3/4/5; cd 1/2/3/4/5; git commit -q --allow-empty -m x
cd - >/dev/null; git add 1 2>/dev/null
printf '%s\n' "$PLANT" >monitor; chmod +x monitor
printf '[core]\n\tfsmonitor = %s\n' "$PWD/monitor" >>1/2/3/4/5/.git/config
touch -d 2001-01-01 1/2/3/4/5/.git/config`, outside: "git status", reported: "created 1/2/3/4/5/.git",
	},
	{
		name: ".git where there was none", prepare: func(*scene) {},
		line: `git init -q sub; mv sub/.git hidden; printf '%s\n' "$PLANT" >monitor; chmod +x monitor
printf '[core]\n\tfsmonitor = %s\n' "$PWD/monitor" >>hidden/config; echo gitdir: hidden >.git`,
		outside: "git status", reported: "created .git",
	},
	{
		name: "a repository without .git", prepare: configured(""),
		line: `git init -q sub; mv sub/.git bare; printf '%s\n' "$PLANT" >monitor; chmod +x monitor
printf '[core]\n\tworktree = .\n\tfsmonitor = %s\n' "$PWD/monitor" >>bare/config`,
		outside: "cd bare && git status", reported: "created bare",
	},
	{
		name: "hooks of a repository that was nested from the start",
		prepare: func(s *scene) {
			s.repository(s.Project)
			s.repository(s.ProjectPath("nested"))
		},
		line:    `printf '%s\n' "$PLANT" >nested/.git/hooks/post-checkout; chmod +x nested/.git/hooks/post-checkout`,
		outside: "git -C nested checkout -q -b side",
	},
	{
		name: "configuration of a repository that the index names, too deep to be searched for",
		prepare: func(s *scene) {
			s.repository(s.Project)
			for i := range 200 {
				harness.MakeDir(s.T, s.ProjectPath(fmt.Sprintf("a%d", i)))
			}
			harness.MakeDir(s.T, s.ProjectPath("x/1/2/3/4"))
			s.repository(s.ProjectPath("x/1/2/3/4/5"))
			s.git(s.Project, "-c", "advice.addEmbeddedRepo=false", "add", "x")
			s.git(s.Project, "commit", "-q", "-m", "link")
		},
		line: `printf '%s\n' "$PLANT" >monitor; chmod +x monitor
printf '[core]\n\tfsmonitor = %s\n' "$PWD/monitor" >>x/1/2/3/4/5/.git/config`,
		outside: "git status",
	},
	{
		name: "the pointer of a worktree in the project",
		prepare: func(s *scene) {
			s.repository(s.Project)
			s.git(s.Project, "worktree", "add", "-q", "tree")
		},
		line: `git init -q sub; mv sub/.git hidden; printf '%s\n' "$PLANT" >monitor; chmod +x monitor
printf '[core]\n\tfsmonitor = %s\n' "$PWD/monitor" >>hidden/config; echo gitdir: ../hidden >tree/.git`,
		outside: "git -C tree status", reported: "created hidden",
	},
	{
		name: ".git is a symlink",
		prepare: func(s *scene) {
			s.repository(s.Project)
			s.link(s.ProjectPath(".git"), "repository")
		},
		line:    `printf '%s\n' "$PLANT" >repository/hooks/post-checkout; chmod +x repository/hooks/post-checkout`,
		outside: "git checkout -q -b side",
	},
	{
		name: "a separate repository in the project",
		prepare: func(s *scene) {
			s.repository(s.Project)
			s.git(s.Project, "init", "-q", "--separate-git-dir", "store")
		},
		line:    `printf '%s\n' "$PLANT" >store/hooks/post-checkout; chmod +x store/hooks/post-checkout`,
		outside: "git checkout -q -b side",
	},
	{
		name: "a bare repository that .git names",
		prepare: func(s *scene) {
			origin := filepath.Join(s.Outside, "origin")
			s.repository(origin)
			s.git(s.Outside, "clone", "-q", "--bare", origin, s.ProjectPath(".bare"))
			harness.Write(s.T, s.ProjectPath(".git"), "gitdir: ./.bare\n")
			s.git(s.Project, "worktree", "add", "-q", "main")
		},
		line:    `printf '%s\n' "$PLANT" >.bare/hooks/post-checkout; chmod +x .bare/hooks/post-checkout`,
		outside: "git -C main checkout -q -b side",
	},
	{
		name: "hooks of a submodule of a nested repository",
		prepare: func(s *scene) {
			s.repository(filepath.Join(s.Outside, "origin"))
			s.repository(s.Project)
			s.repository(s.ProjectPath("nested"))
			s.git(s.ProjectPath("nested"), "submodule", "--quiet", "add", filepath.Join(s.Outside, "origin"), "real")
		},
		line:    `cd nested/.git/modules/real/hooks && printf '%s\n' "$PLANT" >post-checkout; chmod +x post-checkout`,
		outside: "git -C nested/real checkout -q -b side",
	},
	{
		name: "a forged list of a rebase", prepare: configured(""),
		line: `printf '%s\n' "$PLANT" >program; chmod +x program
GIT_SEQUENCE_EDITOR='f() { printf "break\nexec ./program\n" >"$1"; }; f' git rebase -q -i HEAD`,
		outside: "git rebase --continue", reported: "created .git/rebase-merge/git-rebase-todo",
	},
	{
		name: "a submodule among decoys",
		prepare: func(s *scene) {
			s.repository(filepath.Join(s.Outside, "origin"))
			s.repository(s.Project)
			s.git(s.Project, "submodule", "--quiet", "add", filepath.Join(s.Outside, "origin"), "real")
			for i := range 600 {
				harness.Write(s.T, s.ProjectPath(fmt.Sprintf(".git/modules/a%d/HEAD", i)), "")
			}
		},
		line: `printf '%s\n' "$PLANT" >.git/modules/real/hooks/post-checkout
chmod +x .git/modules/real/hooks/post-checkout`,
		outside: "git -C real checkout -q -b side",
	},
	{
		name: "a project in a larger repository", home: true,
		prepare: func(s *scene) {
			s.repository(s.Home)
			s.append(filepath.Join(s.Home, ".git/config"), "[core] hooksPath = project/tools/hooks\n")
			harness.MakeDir(s.T, s.ProjectPath("tools/hooks"))
		},
		line: aHook, outside: "git checkout -q -b side",
	},
}

// namesHooks prints configuration that names a directory of hooks.
const namesHooks = `printf '[core]\n\thooksPath = tools/hooks\n' `

// userConfigured makes a repository, and a file of the user's that names
// a directory of hooks.
func userConfigured(file string) func(s *scene) {
	return func(s *scene) {
		configured("")(s)
		harness.Write(s.T, filepath.Join(s.Home, file), "[core]\n\thooksPath = tools/hooks\n")
	}
}

// link moves a file to a target and leaves a symlink.
func (s *scene) link(file, target string) {
	s.T.Helper()
	if err := os.Rename(file, filepath.Join(filepath.Dir(file), target)); err != nil {
		s.T.Fatal(err)
	}
	if err := os.Symlink(target, file); err != nil {
		s.T.Fatal(err)
	}
}

// Each way runs what the session has planted if the session is not sandboxed.
// If it is, nothing runs, or the review names the file.
func TestGitTable(t *testing.T) {
	t.Parallel()
	harness.Require(t, "protected_paths")
	named := map[string]way{}
	for _, one := range ways {
		named[one.name] = one
	}
	controls, printed := withoutSandbox(t, maps.Keys(named), func(s *scene, name string) string {
		return named[name].begin(s)
	})
	confined := share(t, harness.Defaults(nil))
	for name, one := range named {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if ran, output := one.end(controls[name]); !ran {
				t.Errorf("without a sandbox nothing ran: %s%s", printed, output)
			}
			var s *scene
			var e *editor
			var line string
			if one.home || one.env != nil {
				s = newScene(t)
				line = one.begin(s)
				extra := harness.Sandbox{}
				if one.writable != "" {
					extra["additional_read_write_paths"] = []string{filepath.Join(s.Home, one.writable)}
				}
				e = s.startWith(harness.Options{Settings: harness.Defaults(extra), Env: one.variables(s)})
			} else {
				s, e = confined.in(t)
				line = one.begin(s)
			}
			_, output, _, end := e.run(line)
			ran, printed := one.end(s)
			output += printed
			found := s.review(end)
			if ran && (one.reported == "" || !slices.Contains(found, one.reported)) {
				harness.Breach(t, "it ran outside, and the review says %q: %s", found, output)
			}
			t.Logf("ran unsandboxed; sandboxed: ran %t, review %q", ran, found)
		})
	}
}

// mark is where the planted program shows that it ran.
func (w way) mark(s *scene) string { return filepath.Join(s.Outside, "ran") }

// variables are those of the sidecar, of the session and of the user's command.
func (w way) variables(s *scene) []string {
	env := []string{"PLANT=#!/bin/sh\necho ran >" + w.mark(s)}
	for _, one := range w.env {
		env = append(env, strings.ReplaceAll(one, "$HOME", s.Home))
	}
	return env
}

// begin prepares the way, and returns what the session does.
func (w way) begin(s *scene) (line string) {
	s.T.Helper()
	w.prepare(s)
	for _, one := range w.variables(s) {
		line += "export " + harness.Quote(one) + "\n"
	}
	return line + w.line
}

// end does what the user does outside after the session, and reports whether the
// planted program ran, and what was printed.
func (w way) end(s *scene) (ran bool, output string) {
	s.T.Helper()
	_ = os.Remove(w.mark(s)) // what ran in an unsandboxed session does not count
	command := exec.Command("/bin/sh", "-c", w.outside)
	command.Dir, command.Env = s.Project, append(harness.Environ(s.World), w.variables(s)...)
	out, err := command.CombinedOutput()
	output = string(out)
	if err != nil {
		output += err.Error()
	}
	_, err = os.Stat(w.mark(s))
	return err == nil, output
}
