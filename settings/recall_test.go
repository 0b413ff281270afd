package settings

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"math/rand/v2"
	"os"
	"os/exec"
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
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// remembering is the same snapshot with a memory of its own.
func remembering(s *Snapshot) *Snapshot {
	s.memory = &memory{kept: map[remembered]memo{}}
	return s
}

// afresh is the same snapshot, which nobody has asked and which remembers nothing.
func afresh(s *Snapshot) *Snapshot {
	fresh := s.with(s.granted)
	fresh.memory = nil
	return fresh
}

func makeRepository(t *testing.T, dir string) {
	t.Helper()
	if out, err := exec.Command("/usr/bin/git", "init", "-q", dir).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

// checkRecall checks that a snapshot means what it means afresh, and that the
// next one takes its evaluation. Others may change this machine meanwhile, so a
// few attempts count. What is outdated stays so in all of them.
func (d *fixture) checkRecall() Compiled {
	d.t.Helper()
	var got, want Compiled
	equal, kept := false, false
	for range 10 {
		snapshot := d.store.InWindow(d.project)
		got, want = snapshot.Compile(document.KindTool), afresh(snapshot).Compile(document.KindTool)
		equal = reflect.DeepEqual(got, want)
		if kept = recalled(snapshot, d.store.InWindow(d.project)); equal && kept {
			return want
		}
	}
	if !equal {
		d.t.Errorf("another result than afresh:\n%+v\nwant\n%+v", got, want)
	}
	if !kept {
		d.t.Error("control: nothing has changed, and the evaluation is made again")
	}
	return want
}

// recalled reports whether two snapshots share one evaluation.
func recalled(first, then *Snapshot) bool {
	return first.evaluation(document.KindTool) == then.evaluation(document.KindTool)
}

// After each change of what an evaluation reads, the store's next snapshot means
// what it means to a store that has kept nothing.
func TestRecall_EqualsAFreshEvaluation(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat("/usr/bin/git"); err != nil {
		harness.Skip(t, "git", err.Error())
	}
	remove := func(path string) func(*fixture) { return func(d *fixture) { d.must(os.RemoveAll(d.home + path)) } }
	write := func(path, text string) func(*fixture) { return func(d *fixture) { d.write(d.home+path, text) } }
	link := func(target, path string) func(*fixture) {
		return func(d *fixture) {
			d.must(os.RemoveAll(d.home + path))
			d.must(os.Symlink(d.home+target, d.home+path))
		}
	}
	const granting = `{"terminal": {"sandbox": {"enabled": true, "system_paths": {"read_write": []},
		"additional_read_only_paths": ["~/data", "~/link", "~/late"], "protected_paths": ["secret/*.pem"]}}}`
	const asking = `{"terminal": {"sandbox": {"additional_read_only_paths": ["~/other"]}}}`
	const tightening = `{"terminal": {"sandbox": {"allow_network": false}}}`
	for name, change := range map[string]func(*fixture){
		"a granted path is made":      write("/late", ""),
		"a protected name appears":    write("/project/secret/new.pem", ""),
		"a secret appears":            write("/.bashrc", "export API_TOKEN=abcdefghijklmnop\n"),
		"a granted path is removed":   remove("/data"),
		"the project's .git goes":     remove("/project/.git"),
		"a directory becomes a link":  link("/other", "/data"),
		"a link leads elsewhere":      link("/other", "/link"),
		"a link becomes a directory":  func(d *fixture) { remove("/link")(d); write("/link/x", "")(d) },
		"git's configuration changes": write("/project/.git/config", "[core]\n\thooksPath = tracked\n"),
		"the user's git changes":      write("/.gitconfig", "[core]\n\thooksPath = tracked\n"),
		"a repository in it is made":  func(d *fixture) { makeRepository(t, d.project+"/vendored") },
		"the user's settings change": func(d *fixture) {
			d.save(d.own, strings.Replace(granting, "~/data", "~/other", 1))
		},
		"other settings appear":          func(d *fixture) { d.save(d.user, tightening) },
		"the user's settings are wrong":  func(d *fixture) { d.save(d.own, granting[1:]) },
		"the user's settings go":         func(d *fixture) { d.must(os.Remove(d.own)) },
		"the project's settings appear":  write("/project/.zed/settings.json", asking),
		"the project's settings tighten": write("/project/.zed/settings.json", tightening),
		"an entry is granted": func(d *fixture) {
			d.must(d.store.Grant(d.project, Suggestion{Key: "additional_read_only_paths", Value: d.home + "/other"}))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newFixture(t)
			d.write(d.own, granting)
			for _, file := range []string{
				"data/x", "data/hooks/x", "other/hooks/x", "project/secret/old.pem", "project/vendored/x", ".gitconfig",
			} {
				d.write(filepath.Join(d.home, file), "")
			}
			d.must(os.Symlink(filepath.Join(d.home, "data"), filepath.Join(d.home, "link")))
			makeRepository(t, d.project)
			d.open(nil)
			before := d.checkRecall()
			change(d)
			if reflect.DeepEqual(d.checkRecall(), before) {
				t.Error("control: the change changes nothing")
			}
		})
	}
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
				now := s.with(nil)
				got, want := now.Compile(document.KindTool), afresh(now).Compile(document.KindTool)
				if !reflect.DeepEqual(got, want) {
					t.Fatalf("another result than afresh:\n%+v\nwant\n%+v", got, want)
				}
				if recalled(now, s.with(nil)) {
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
		s.user, s.project = []source.State{{File: "a"}, {File: "b"}}, &source.State{File: "c"}
		s.granted = []addition{{Key: "a"}}
		s.trust = &trust.List{Path: "/t", Projects: []trust.Project{{Path: "/p"}}}
		return s
	}
	compared := map[string][]func(*Snapshot){
		"user": {
			func(s *Snapshot) { s.user = s.user[:1] },
			func(s *Snapshot) { s.user[1].Good = &document.Block{} },
			func(s *Snapshot) { s.user[0].Digest[0]++ },
			func(s *Snapshot) { s.user[0], s.user[1] = s.user[1], s.user[0] },
		},
		"project": {
			func(s *Snapshot) { s.project = nil }, func(s *Snapshot) { s.project.Good = &document.Block{} },
			func(s *Snapshot) { s.project.Problem = &document.Diagnostic{} },
		},
		"granted":    {func(s *Snapshot) { s.granted = nil }, func(s *Snapshot) { s.granted[0].Value = "b" }},
		"others":     {func(s *Snapshot) { s.others = []string{"/home/u"} }},
		"projectDir": {func(s *Snapshot) { s.projectDir += "x" }},
		"trust": {
			func(s *Snapshot) { s.trust = nil }, func(s *Snapshot) { s.trust.Path = "/u" },
			func(s *Snapshot) { s.trust.Problem = "x" }, func(s *Snapshot) { s.trust.Projects[0].Digest = "x" },
			func(s *Snapshot) { s.trust.Projects = nil },
		},
	}
	ofTheStore := []string{"host", "files", "askGit", "command", "ownPaths", "hostsGap"}
	for i := range reflect.TypeFor[input]().NumField() {
		name := reflect.TypeFor[input]().Field(i).Name
		if compared[name] == nil && !slices.Contains(ofTheStore, name) {
			t.Errorf("the field %s is not compared", name)
		}
	}
	if !snapshot().sameSettings(&snapshot().input) {
		t.Fatal("control: equal settings differ")
	}
	for name, changes := range compared {
		for i, change := range changes {
			other := snapshot()
			change(other)
			if snapshot().sameSettings(&other.input) || other.sameSettings(&snapshot().input) {
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
	s.askGit = func(resolve.Host, string) git.Answer { return answer }
	s.hostsGap = func() string { return gap }
	for name, change := range map[string]func(){
		"git": func() { answer = make(git.Answer, 1) }, "hosts": func() { gap = "the kernel is old" },
	} {
		before := s.with(nil)
		if !recalled(before, s.with(nil)) {
			t.Errorf("%s: control: nothing has changed", name)
		}
		change()
		if recalled(before, s.with(nil)) {
			t.Errorf("%s: the evaluation from before the change was taken", name)
		}
	}
}

// What an evaluation asks the machine goes through resolve.FS, or nothing would
// notice that it has changed. Whoever adds a call decides.
func TestRecall_NothingElseAsksTheMachine(t *testing.T) {
	t.Parallel()
	allowed := map[string][]string{
		"store.go":        {"os", "fsguard", "time"},    // opens stores, and remembers notes
		"allow.go":        {"os", "fsguard"},            // writes settings files
		"elsewhere.go":    {"os", "fsguard", "syscall"}, // finds the files when a store is opened
		"project.go":      {"time"},                     // writes the list of trusted projects
		"toolchains.go":   {"os.Getuid"},
		"compiled.go":     {"fsguard.MkdirAll"},                             // right before a session starts
		"git/ask_unix.go": {"os", "fsguard", "time", "textfile", "syscall"}, // its answer is asked for again
		"evaluate.go":     {"fsguard.ErrNoAnswer"},
		"grant.go":        {"fsguard.ErrNoAnswer"},
		"git/find.go":     {"fsguard.ErrNoAnswer"},
		"git/named.go":    {"fsguard.ErrNoAnswer"},
	}
	watched := []string{"os", "user", "fsguard", "exec", "net", "time", "syscall", "unix", "textfile"}
	pure := []string{
		"textfile.Missing", "textfile.Cause", "textfile.MaxSize", "textfile.ErrTooLarge", "textfile.ErrNotRegular",
		"time.Duration", "time.Second", "net.SplitHostPort",
	}
	seen := 0
	for _, dir := range []string{".", "document", "git", "gnupg", "sensitive", "sshconfig", "toolchain"} {
		files, err := filepath.Glob(filepath.Join(dir, "*.go"))
		if err != nil {
			t.Fatal(err)
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
