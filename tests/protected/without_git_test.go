//go:build linux

package protected

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

// gitPlaces are those in which the sidecar looks for git.
const gitPlaces = "/usr/bin/git /usr/local/bin/git /bin/git /run/current-system/sw/bin/git " +
	"/nix/var/nix/profiles/default/bin/git"

// asGit has a sidecar run where something else is in every place of git; ""
// changes nothing. No program of the machine is touched.
func (s *scene) asGit(t *testing.T, other string) func(*exec.Cmd) {
	t.Helper()
	script := "true"
	if other != "" {
		script = "for git in " + gitPlaces + "; do if [ -f $git ]; then mount --bind " + harness.Quote(other) +
			" $git; fi; done"
	}
	empty := filepath.Join(s.Home, "empty")
	harness.MakeDir(t, empty)
	return mounted(t, empty, script)
}

// noGit is a machine without a git that the sidecar can use.
type noGit struct {
	name string
	// program is in the place of git; "" is git itself.
	program string
	// why is said of a repository above the project, and stored of what a
	// session has stored in git; "" if git answers.
	why, stored string
}

func noGits(t *testing.T) []noGit {
	t.Helper()
	hanging := filepath.Join(t.TempDir(), "git")
	harness.WriteProgram(t, hanging, "#!/bin/sh\nexec sleep 3600\n")
	const unsaid = "git did not say what it holds"
	return []noGit{
		{name: "the control"},
		// A device is no program, as a missing file is none.
		{
			name: "missing", program: "/dev/null", stored: unsaid,
			why: "git is not installed, or not in a directory of the system",
		},
		{name: "hanging", program: hanging, why: "git does not answer", stored: unsaid},
	}
}

// Sessions start where git is missing or does not end, and what git runs is
// protected all the same: the sidecar reads where that is by itself.
func TestWithoutGitSessionsStartAndNothingOpens(t *testing.T) {
	t.Parallel()
	harness.Require(t, "protected_paths")
	files := []string{
		".git/hooks/pre-commit", ".git/config", "tools/hooks/pre-commit", ".vscode/tasks.json", ".envrc",
		"nested/.git/config", "nested/.git/hooks/pre-commit",
	}
	machines := noGits(t)
	for i, machine := range machines {
		for _, protect := range []bool{true, false} {
			if !protect && !harness.Turn(t, i, len(machines)) {
				continue // the control is the same on each machine
			}
			t.Run(machine.name+map[bool]string{true: ", protected"}[protect], func(t *testing.T) {
				t.Parallel()
				s := newScene(t)
				s.repository(s.Project)
				s.repository(s.ProjectPath("nested"))
				s.git(s.Project, "config", "core.hooksPath", "tools/hooks")
				harness.MakeDir(t, s.ProjectPath("tools/hooks"))
				keys := harness.Sandbox{}
				if !protect {
					keys["protected_paths"] = []string{"!*"}
				}
				e := s.start(harness.Defaults(keys), harness.Machine{Wrap: s.asGit(t, machine.program)})
				before, line := map[string]string{}, "echo started; "
				for _, file := range files {
					before[file] = harness.Read(t, s.ProjectPath(file))
					line += "mkdir -p $(dirname " + file + "); echo evil >>" + file + "; "
				}
				reported := len(e.denials.All())
				reply, output, _, end := e.run(line)
				if !strings.HasPrefix(output, "started") || !reply.Sandbox.Applied {
					t.Fatalf("%+v: %s", reply.Sandbox, output)
				}
				var alarms []string
				for _, one := range e.denials.All()[reported:] {
					if strings.HasPrefix(one.Access, "protected_") {
						alarms = append(alarms, one.Target)
					}
				}
				firm := reply.Sandbox.Protections["protected_paths"].Status == protocol.Enforced
				for _, file := range files {
					path := s.ProjectPath(file)
					changed := harness.Read(t, path) != before[file]
					switch {
					case !protect && !changed:
						t.Errorf("control: without protection %s is the same: %s", file, output)
					case protect && changed && (firm || !told(end, alarms, s.Project, path)):
						harness.Breach(t, "%s was changed: %+v: %s", file, end.Review, output)
					}
				}
			})
		}
	}
}

// Where git is missing or does not end, a repository above the project is closed,
// and each session says why.
func TestWithoutGitARepositoryAboveIsClosed(t *testing.T) {
	t.Parallel()
	harness.Require(t, "filesystem")
	for _, machine := range noGits(t) {
		t.Run(machine.name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t)
			layouts["package"](s)
			top := filepath.Join(s.Outside, "mono")
			e := s.start(harness.Defaults(nil), harness.Machine{Wrap: s.asGit(t, machine.program)})
			var want []string
			if machine.why != "" {
				want = []string{`the git repository "` + top + `" above the project is closed: ` + machine.why}
			}
			for range 2 {
				reply, output, _, _ := e.run("cat file; cat ../other/source")
				if !strings.Contains(output, "content\n") {
					t.Errorf("control: the project's own file cannot be read: %s", output)
				}
				if said := aboutAbove(reply.Sandbox.Warnings); !slices.Equal(said, want) {
					t.Errorf("said: %q, want %q", said, want)
				}
				switch open := strings.Contains(output, "sibling\n"); {
				case open && machine.why != "":
					harness.Breach(t, "it is open: %s", output)
				case !open && machine.why == "":
					t.Errorf("control: it is closed: %s", output)
				}
			}
		})
	}
}

// Where git cannot say what a session has stored, the review names the branch.
func TestWithoutGitTheReviewNamesWhatIsStored(t *testing.T) {
	t.Parallel()
	harness.Require(t, "filesystem")
	for _, machine := range noGits(t) {
		t.Run(machine.name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t)
			s.repository(s.Project)
			s.outside(evilCommit + "rm .git/other; echo $c >commit")
			e := s.start(harness.Defaults(nil), harness.Machine{Wrap: s.asGit(t, machine.program)})
			if _, output, status, end := e.run("cat file"); status != 0 || len(end.Review) > 0 {
				t.Errorf("control: a session that stores nothing: status %d, %+v: %s", status, end.Review, output)
			}
			_, output, status, end := e.run("cat commit >.git/refs/heads/evil")
			if status != 0 {
				t.Fatalf("status %d: %s", status, output)
			}
			want, path := machine.stored, s.ProjectPath(".git/refs/heads/evil")
			if want == "" {
				want, path = `branch "evil"`, s.ProjectPath(".vscode/tasks.json")
			}
			if !slices.ContainsFunc(end.Review, func(f protocol.Finding) bool {
				return (f.Path == path || slices.Contains(f.Others, path)) && strings.Contains(f.Why, want)
			}) {
				harness.Breach(t, "the review does not name %s with %q: %+v", path, want, end.Review)
			}
		})
	}
}

// A git that PATH names is not asked: PATH may lead into a project. Sessions
// start as without it, whether that one hangs, or PATH names none.
func TestTheGitOfPATHIsNotAsked(t *testing.T) {
	t.Parallel()
	harness.Require(t, "filesystem")
	for _, hangs := range []bool{true, false} {
		s := newScene(t)
		layouts["package"](s)
		mark, dir := filepath.Join(s.Outside, "ran"), s.ProjectPath("bin")
		path := dir + ":/usr/bin:/bin"
		if hangs {
			harness.MakeDir(t, dir)
			harness.WriteProgram(t, filepath.Join(dir, "git"), "#!/bin/sh\necho ran >"+harness.Quote(mark)+
				"\nexec sleep 3600\n")
		} else {
			path = dir
		}
		e := s.startWith(harness.Options{Settings: harness.Defaults(nil), Env: []string{"PATH=" + path}})
		reply, output, status, end := e.run(
			"read -r line <../other/source && echo $line; echo x >file; echo x >.envrc; read -r line <file; echo $line")
		if status != 0 || !strings.Contains(output, "sibling\n") || len(aboutAbove(reply.Sandbox.Warnings)) > 0 {
			t.Errorf("hangs %t: status %d, %q: %s", hangs, status, reply.Sandbox.Warnings, output)
		}
		made := s.ProjectPath(".envrc")
		if _, err := os.Lstat(made); err == nil && !told(end, nil, s.Project, made) {
			harness.Breach(t, "hangs %t: it was made in silence: %+v: %s", hangs, end.Review, output)
		}
		if _, err := os.Lstat(mark); err == nil {
			harness.Breach(t, "the git of PATH ran")
		}
		if !hangs {
			continue
		}
		// The control: it runs for a program that goes by PATH.
		command := exec.Command("/bin/sh", "-c", "exec git status")
		command.Dir, command.Env = s.Project, append(harness.Environ(s.World), "PATH="+path)
		harness.Must(t, command.Start())
		t.Cleanup(func() {
			_ = command.Process.Kill()
			_ = command.Wait() // it was killed
		})
		harness.Eventually(t, "control: the git of PATH runs outside", func() bool {
			_, err := os.Lstat(mark)
			return err == nil
		})
	}
}
