package compile

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"math/rand/v2"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/settings/document"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/git"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/resolve"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/resolve/resolvetest"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/source"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/trust"
)

// remembering is the same snapshot with a memory of its own.
func remembering(s *Snapshot) *Snapshot {
	s.memory = NewMemory()
	return s
}

// afresh is the same snapshot, which nobody has asked and which remembers nothing.
func afresh(s *Snapshot) *Snapshot {
	fresh := s.With(s.Granted)
	fresh.memory = nil
	return fresh
}

// recalled reports whether two snapshots share one evaluation.
func recalled(first, then *Snapshot) bool {
	return first.evaluation(document.KindTool) == then.evaluation(document.KindTool)
}

// Hundreds of changes by chance, each compared with a fresh evaluation.
func TestRecall_EqualsAFreshEvaluationByChance(t *testing.T) {
	t.Parallel()
	for seed := range uint64(8) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			random := rand.New(rand.NewPCG(seed, 1))
			root := t.TempDir()
			tree, err := os.OpenRoot(root) // follows no symlink to this machine's own files
			if err != nil {
				t.Fatal(err)
			}
			defer tree.Close()
			paths := []string{
				"/home/u/data", "/home/u/data/a", "/home/u/other", "/home/u/.gitconfig", "/home/u/.bashrc",
				"/home/u/.ssh/config", "/home/u/.ssh", "/home/u/project/.git", "/home/u/project/.git/config",
				"/home/u/project/.git/hooks", "/home/u/project/sub/.git", "/home/u/project/.gitmodules",
				"/home/u/project/.envrc", "/home/u/project/x.pem", "/home/u/project/.vscode", "/home/u/.cache",
				"/etc/gitconfig", "/tmp", "/run/user/1000", "/usr/bin", "/dev/null",
			}
			targets := []string{
				"/home/u/data", "/home/u/other", "/home/u/project", "data", "../data", "../../other", ".", "gone",
			}
			texts := []string{
				"", "[core]\n\thooksPath = ../data\n", "[include]\n\tpath = ~root/x\n", "gitdir: ../data\n",
				"IdentityAgent ~/data/%l\n", "export TOKEN=abcdefghijklmnop\n",
				"[submodule \"a\"]\n\tpath = sub\n\turl = ../a\n",
			}
			f := resolvetest.Rooted(root)
			s := remembering(snapshotOf(t, f, `{"enabled": true, "toolchains": ["ssh"], "protected_paths": ["*.pem"],
				"additional_read_write_paths": ["~/data", "~/other/a"], "hidden_paths": ["~/other"]}`, ""))
			kept := 0
			for range 60 {
				// What fails changes nothing, which is one of the changes.
				name := paths[random.IntN(len(paths))][1:]
				_ = tree.MkdirAll(filepath.Dir(name), 0o755)
				switch random.IntN(6) {
				case 0:
					_ = tree.RemoveAll(name)
				case 1:
					_ = tree.MkdirAll(name, 0o755)
				case 2:
					_ = tree.RemoveAll(name)
					_ = tree.Symlink(targets[random.IntN(len(targets))], name)
				case 3, 4:
					_ = tree.WriteFile(name, []byte(texts[random.IntN(len(texts))]), 0o644)
				}
				now := s.With(nil)
				got, want := now.Compile(document.KindTool), afresh(now).Compile(document.KindTool)
				if !reflect.DeepEqual(got, want) {
					t.Fatalf("another result than afresh:\n%+v\nwant\n%+v", got, want)
				}
				if recalled(now, s.With(nil)) {
					kept++
				}
			}
			if kept != 60 {
				t.Errorf("control: kept %d of 60 times although nothing had changed", kept)
			}
		})
	}
}

// Each field of a snapshot is compared, or is the same for all snapshots of a
// store. Whoever adds a field decides.
func TestRecall_ComparesTheSettings(t *testing.T) {
	t.Parallel()
	f := resolvetest.Tree(t, map[string]string{"/home/u/project/": ""})
	snapshot := func() *Snapshot {
		s := snapshotOf(t, f, "", "")
		s.UserStates, s.ProjectState = []source.State{{File: "a"}, {File: "b"}}, &source.State{File: "c"}
		s.Granted = []Addition{{Key: "a"}}
		s.Trust = &trust.List{Path: "/t", Projects: []trust.Project{{Path: "/p"}}}
		return s
	}
	compared := map[string][]func(*Snapshot){
		"UserStates": {
			func(s *Snapshot) { s.UserStates = s.UserStates[:1] },
			func(s *Snapshot) { s.UserStates[1].Good = &document.Block{} },
			func(s *Snapshot) { s.UserStates[0].Digest[0]++ },
			func(s *Snapshot) { s.UserStates[0], s.UserStates[1] = s.UserStates[1], s.UserStates[0] },
		},
		"ProjectState": {
			func(s *Snapshot) { s.ProjectState = nil }, func(s *Snapshot) { s.ProjectState.Good = &document.Block{} },
			func(s *Snapshot) { s.ProjectState.Problem = &document.Diagnostic{} },
		},
		"Granted":    {func(s *Snapshot) { s.Granted = nil }, func(s *Snapshot) { s.Granted[0].Value = "b" }},
		"Others":     {func(s *Snapshot) { s.Others = []string{"/home/u"} }},
		"ProjectDir": {func(s *Snapshot) { s.ProjectDir += "x" }},
		"Trust": {
			func(s *Snapshot) { s.Trust = nil }, func(s *Snapshot) { s.Trust.Path = "/u" },
			func(s *Snapshot) { s.Trust.Problem = "x" }, func(s *Snapshot) { s.Trust.Projects[0].Digest = "x" },
			func(s *Snapshot) { s.Trust.Projects = nil },
		},
	}
	ofTheStore := []string{"Host", "FS", "AskGit", "AskParent", "Command", "Agent", "OwnPaths", "HostsGap"}
	for i := range reflect.TypeFor[Input]().NumField() {
		name := reflect.TypeFor[Input]().Field(i).Name
		if compared[name] == nil && !slices.Contains(ofTheStore, name) {
			t.Errorf("the field %s is not compared", name)
		}
	}
	if !snapshot().sameSettings(&snapshot().Input) {
		t.Fatal("control: equal settings differ")
	}
	for name, changes := range compared {
		for i, change := range changes {
			other := snapshot()
			change(other)
			if snapshot().sameSettings(&other.Input) || other.sameSettings(&snapshot().Input) {
				t.Errorf("%s, change %d: the settings are the same", name, i)
			}
		}
	}
}

// What git says and whether hosts can be told apart is asked each time.
func TestRecall_AsksWhatIsNoFile(t *testing.T) {
	t.Parallel()
	gap := ""
	f := resolvetest.Tree(t, map[string]string{"/home/u/project/": ""})
	s := remembering(snapshotOf(t, f, `{"enabled": true, "allow_network": false, "allowed_hosts": ["example.com"]}`,
		""))
	var answer git.Answer
	s.AskGit = func(resolve.Host, string) git.Answer { return answer }
	s.HostsGap = func() string { return gap }
	for name, change := range map[string]func(){
		"git": func() { answer = make(git.Answer, 1) }, "hosts": func() { gap = "the kernel is old" },
	} {
		before := s.With(nil)
		if !recalled(before, s.With(nil)) {
			t.Errorf("%s: control: nothing has changed", name)
		}
		change()
		if recalled(before, s.With(nil)) {
			t.Errorf("%s: the evaluation from before the change was taken", name)
		}
	}
}

// What an evaluation asks the machine goes through resolve.FS, or nothing would
// notice that it has changed. Whoever adds a call decides.
func TestRecall_NothingElseAsksTheMachine(t *testing.T) {
	t.Parallel()
	allowed := map[string][]string{
		"toolchains.go":         {"os.Getuid"},
		"compiled.go":           {"fsguard.MkdirAll", "fsguard.NotMade"},          // right before a session starts
		"../git/ask_unix.go":    {"os", "fsguard", "time", "textfile", "syscall"}, // its answer is asked for again
		"../git/parent_unix.go": {"os", "fsguard", "time", "textfile", "syscall"}, // likewise
		"actors.go":             {"time"},                                         // no part of an evaluation
		"evaluate.go":           {"fsguard.ErrNoAnswer"},
		"grant.go":              {"fsguard.ErrNoAnswer"},
		"../git/find.go":        {"fsguard.ErrNoAnswer"},
		"../git/named.go":       {"fsguard.ErrNoAnswer"},

		"../sensitive/private.go": {"fsguard.ErrNoAnswer", "fsguard.ErrRemote"},
	}
	watched := []string{"os", "user", "fsguard", "exec", "net", "time", "syscall", "unix", "textfile"}
	pure := []string{
		"textfile.Missing", "textfile.Cause", "textfile.MaxSize", "textfile.ErrTooLarge", "textfile.ErrNotRegular",
		"time.Duration", "time.Second", "net.SplitHostPort",
	}
	seen := 0
	for _, dir := range []string{
		".", "../document", "../git", "../gnupg", "../sensitive", "../sshconfig", "../toolchain",
	} {
		files, err := filepath.Glob(filepath.Join(dir, "*.go"))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %d files, %v", dir, len(files), err)
		}
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			tree, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			imported := map[string]bool{}
			for _, one := range tree.Imports {
				imported[strings.Trim(path.Base(one.Path.Value), `"`)] = true
			}
			ast.Inspect(tree, func(n ast.Node) bool {
				selector, _ := n.(*ast.SelectorExpr)
				if selector == nil {
					return true
				}
				from, _ := selector.X.(*ast.Ident)
				if from == nil || from.Obj != nil || !imported[from.Name] || !slices.Contains(watched, from.Name) {
					return true
				}
				seen++
				name, list := from.Name+"."+selector.Sel.Name, allowed[filepath.ToSlash(file)]
				if !slices.Contains(pure, name) && !slices.Contains(list, from.Name) && !slices.Contains(list, name) {
					t.Errorf("%s: %s: an evaluation that is kept would not notice a change", file, name)
				}
				return true
			})
		}
	}
	if seen == 0 {
		t.Error("control: nothing was found")
	}
}
