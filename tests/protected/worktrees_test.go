//go:build linux

package protected

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// worktreeKind is a working tree that was made outside, for an agent or by hand,
// and where a session works. $M is the main working tree, and $X the other one.
type worktreeKind struct {
	name string
	at   string // $X, relative to $M
	// linked: the project is $X, and else it is $M.
	linked bool
	// grant is a directory that sessions may write, relative to $M.
	grant string
	// reviewed are files that sessions may change, as the review says.
	reviewed []string
	// crowd are directories in $M. Among more than 64 a start does not look for
	// repositories: $X/.git is known because the repository has registered it.
	crowd int
	// commits: git commit works in $X.
	commits bool
}

// ofWorktrees are files that programs outside act on. $D is what the repository
// has for $X alone, and $O what it has for a third working tree.
var ofWorktrees = []string{
	"$X/.git", "$X/.vscode/tasks.json", "$X/.claude/settings.json", "$D/commondir", "$D/gitdir", "$O/commondir",
	"$O/gitdir", "$M/.git/hooks/pre-commit", "$M/.git/config", "$M/.claude/settings.json", worktreesOwn,
}

// worktreesOwn does not exist, and git would read it.
const worktreesOwn = "$D/config.worktree"

// ofOtherWorktrees are what the repository has for the others, as a session in a
// linked one sees it. git writes all of it.
var ofOtherWorktrees = []string{
	"$M/.git/index", "$M/.git/logs/HEAD", "$M/.git/refs/heads/main", "$M/.git/rebase-merge/git-rebase-todo", "$O/index",
	"$O/logs/HEAD",
}

// inSubdirectories are names of the table that are protected in a project, and
// reviewed below it.
var inSubdirectories = []string{"$X/.vscode/tasks.json", "$X/.claude/settings.json"}

var worktreeKinds = []worktreeKind{
	{
		name: "an agent's own is the project", at: ".claude/worktrees/x", linked: true, reviewed: ofOtherWorktrees,
		commits: true,
	},
	{name: "one beside is the project", at: "../x", linked: true, reviewed: ofOtherWorktrees, commits: true},
	{name: "an agent's own in the project", at: ".claude/worktrees/x"},
	{name: "another one in the project", at: ".worktrees/x", reviewed: inSubdirectories, commits: true},
	{
		name: "another one in a large project", at: ".worktrees/x", reviewed: inSubdirectories, crowd: 100,
		commits: true,
	},
	{
		name: "one beside the project, in a large grant", at: "../trees/x", grant: "..", reviewed: inSubdirectories,
		crowd: 100, commits: true,
	},
	{name: "one beside the project", at: "../x"},
	{name: "one beside the project, granted", at: "../x", grant: "../x", commits: true},
	{
		name: "one beside the project, granted with it", at: "../x", grant: "..", reviewed: inSubdirectories,
		commits: true,
	},
}

// worktrees makes them, and returns what replaces their names.
func (s *scene) worktrees(k worktreeKind) *strings.Replacer {
	s.T.Helper()
	top := filepath.Join(s.Home, "work/main")
	x, other := filepath.Join(top, k.at), filepath.Join(s.Home, "third")
	harness.MakeDir(s.T, filepath.Dir(top))
	s.repository(top)
	s.append(filepath.Join(top, ".git/config"), "[extensions]\n\tworktreeConfig = true\n")
	harness.Write(s.T, filepath.Join(top, ".claude/settings.json"), "{}")
	s.git(top, "worktree", "add", "-q", "-b", "x", x)
	s.git(top, "worktree", "add", "-q", "-b", "third", other)
	for i := range k.crowd {
		harness.MakeDir(s.T, filepath.Join(top, fmt.Sprintf("a%d", i)))
	}
	if s.Project = top; k.linked {
		s.Project = x
	}
	own := filepath.Join(top, ".git/worktrees")
	return strings.NewReplacer("$M", top, "$X", x, "$D", filepath.Join(own, "x"), "$O", filepath.Join(own, "third"))
}

func (s *scene) worktreeSettings(k worktreeKind) string {
	keys := harness.Sandbox{}
	if k.grant != "" {
		keys["additional_read_write_paths"] = []string{filepath.Join(s.Home, "work/main", k.grant)}
	}
	return harness.Defaults(keys)
}

// In each working tree of a repository, what programs outside act on stays as it
// is. Where a session may change it, the review names it. git commit works in
// those that a session may write.
func TestWorktreesOfAgents(t *testing.T) {
	t.Parallel()
	harness.Require(t, "protected_paths")
	requireObserver(t)
	machines := harness.Machines(t)
	kinds, controls := map[string]worktreeKind{}, map[string]evilWrites{}
	for _, k := range worktreeKinds {
		kinds[k.name] = k
	}
	_, printed := withoutSandbox(t, maps.Keys(kinds), func(s *scene, name string) string {
		controls[name] = s.evilWrites(kinds[name].files(), s.worktrees(kinds[name]))
		return controls[name].line
	})
	for i, k := range worktreeKinds {
		if want, changed := k.files(), controls[k.name].changed(t); len(changed) != len(want) {
			t.Errorf("control: of %q these change: %q: %s", want, changed, printed)
		}
		for j, machine := range machines {
			if !harness.Turn(t, i+j, len(machines)) {
				continue
			}
			t.Run(k.name+", "+machine.Name, func(t *testing.T) {
				t.Parallel()
				s := newScene(t)
				names := s.worktrees(k)
				e := s.start(s.worktreeSettings(k), machine)
				_, output, status, _ := e.run(names.Replace(`cd '$X' && git commit -q --allow-empty -m one &&
echo more >>file && git commit -q -a -m two && git log --oneline | grep -q two && git status --short`))
				// Without namespaces a repository outside of the project is
				// only read.
				if k.commits && status != 0 && (machine.Namespaces || !k.linked) {
					t.Errorf("git commit: status %d: %s", status, output)
				}
				changed, named, output := s.changeWorktrees(e, k, names)
				for _, file := range changed {
					may := file == worktreesOwn || slices.Contains(k.reviewed, file)
					switch {
					case !slices.Contains(named, file):
						harness.Breach(t, "%s was changed, and the review does not name it: %s", file, output)
					case machine.Namespaces && !may:
						harness.Breach(t, "%s was changed: %s", file, output)
					}
				}
				for _, file := range k.reviewed {
					if machine.Namespaces && !slices.Contains(changed, file) {
						t.Errorf("control: sessions may change %s, and it is the same: %s", file, output)
					}
				}
			})
		}
	}
}

// files are those that a session of the kind tries to change.
func (k worktreeKind) files() []string {
	if k.linked {
		return slices.Concat(ofWorktrees, ofOtherWorktrees)
	}
	return ofWorktrees
}

// changeWorktrees has a session write to all files. It returns those that are not
// the same afterwards, and those that are named at the session's end or before.
func (s *scene) changeWorktrees(
	e *editor, k worktreeKind, names *strings.Replacer,
) (changed, named []string, output string) {
	s.T.Helper()
	writes := s.evilWrites(k.files(), names)
	reported := len(e.denials.All())
	_, output, _, end := e.run(writes.line)
	var alarms []string
	for _, one := range e.denials.All()[reported:] {
		if strings.HasPrefix(one.Access, "protected_") {
			alarms = append(alarms, one.Target)
		}
	}
	top := names.Replace("$M")
	if k.grant == ".." {
		top = filepath.Dir(top)
	}
	for _, file := range k.files() {
		if told(end, alarms, top, names.Replace(file)) {
			named = append(named, file)
		}
	}
	return writes.changed(s.T), named, output + fmt.Sprintf("\nthe review: %+v", end.Review)
}

// evilWrites are a line that writes to files, and what they were before.
type evilWrites struct {
	line   string
	names  *strings.Replacer // of the files
	before map[string]string // by file
}

func (s *scene) evilWrites(files []string, names *strings.Replacer) evilWrites {
	s.T.Helper()
	w := evilWrites{names: names, before: map[string]string{}}
	for _, file := range files {
		path := names.Replace(file)
		w.before[file] = harness.Read(s.T, path)
		w.line += fmt.Sprintf("mkdir -p %s && echo evil >%s\n", harness.Quote(filepath.Dir(path)), harness.Quote(path))
	}
	return w
}

// changed lists the files that are not the same any more.
func (w evilWrites) changed(t testing.TB) (list []string) {
	t.Helper()
	for file, before := range w.before {
		if harness.Read(t, w.names.Replace(file)) != before {
			list = append(list, file)
		}
	}
	return list
}

// A working tree that a session makes is one that git commit works in. What
// programs outside act on in it is protected from the next session on.
func TestAWorktreeMadeInside(t *testing.T) {
	t.Parallel()
	requireObserver(t)
	for name, grant := range map[string]string{".worktrees/y": "", "../y": ".."} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := worktreeKind{at: "../x", grant: grant}
			for _, sandboxed := range []bool{false, true} {
				s := newScene(t)
				names := s.worktrees(k)
				settings := harness.Off()
				if sandboxed {
					settings = s.worktreeSettings(k)
				}
				e := s.start(settings, harness.Machine{})
				_, output, status, _ := e.run("set -e; git worktree add -q -b y " + name + "; cd " + name +
					"; git commit -q --allow-empty -m one; echo more >>file; git commit -q -a -m two; git status --short")
				if status != 0 {
					t.Fatalf("sandboxed %t: status %d: %s", sandboxed, status, output)
				}
				y, own := s.ProjectPath(name), names.Replace("$M/.git/worktrees/y")
				before, line := map[string]string{}, ""
				for _, file := range []string{
					filepath.Join(y, ".git"), filepath.Join(own, "commondir"), filepath.Join(own, "gitdir"),
				} {
					before[file] = harness.Read(t, file)
					if before[file] == "" {
						t.Fatalf("control: there is no %s", file)
					}
					line += "echo evil >>" + harness.Quote(file) + "\n"
				}
				_, output, _, _ = e.run(line)
				for file, content := range before {
					switch changed := harness.Read(t, file) != content; {
					case changed && sandboxed:
						harness.Breach(t, "%s was changed: %s", file, output)
					case !changed && !sandboxed:
						t.Errorf("control: %s is the same: %s", file, output)
					}
				}
				if !sandboxed {
					continue
				}
				if _, output, status, _ = e.run("git -C " + name + " commit -q --allow-empty -m three"); status != 0 {
					t.Errorf("in the next session: status %d: %s", status, output)
				}
			}
		})
	}
}
