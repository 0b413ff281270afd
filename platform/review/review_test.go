package review

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/protected"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/deadline"
)

// What a search finds on a busy machine is no question of time here.
func TestMain(m *testing.M) {
	maxSearchTime = time.Minute
	os.Exit(m.Run())
}

// written are the rules of a session that may write directories.
func written(dirs ...string) (rules []policy.Rule) {
	for _, dir := range dirs {
		rules = append(rules, policy.Rule{Path: dir, Access: policy.ReadWrite})
	}
	return rules
}

// project is a directory that changes between two scans.
type project struct {
	t   *testing.T
	dir string
}

func (p project) write(name, text string) {
	p.t.Helper()
	path := filepath.Join(p.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		p.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		p.t.Fatal(err)
	}
}

func (p project) link(target, name string) {
	p.t.Helper()
	if err := os.Symlink(target, filepath.Join(p.dir, name)); err != nil {
		p.t.Fatal(err)
	}
}

func (p project) move(from, to string) {
	p.t.Helper()
	if err := os.Rename(filepath.Join(p.dir, from), filepath.Join(p.dir, to)); err != nil {
		p.t.Fatal(err)
	}
}

// protecting returns a policy that protects names of a project.
func protecting(dir string, names ...string) *policy.Policy {
	p := &policy.Policy{Project: dir, Rules: written(dir)}
	for _, name := range names {
		pattern := strings.Contains(name, "*")
		p.Protected = append(p.Protected, policy.Protected{Path: dir + "/" + name, Pattern: pattern})
	}
	return p
}

func TestFindings(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name   string
		before func(project)
		after  func(project)
		want   string
	}{
		{"nothing", func(p project) {
			p.write("main.go", "")
		}, func(p project) { p.write("main.go", "x"); p.write("other", "") }, ""},
		{"a protected file", func(p project) {
			p.write(".envrc", "a")
		}, func(p project) { p.write(".envrc", "b") }, ".envrc changed"},
		{"a protected file that comes", func(project) {}, func(p project) { p.write(".envrc", "b") }, ".envrc created"},
		{"a file in a directory", func(p project) { p.write(".github/workflows/a.yml", "") }, func(p project) {
			p.write(".github/workflows/b/c.yml", "")
			if err := os.Remove(filepath.Join(p.dir, ".github/workflows/a.yml")); err != nil {
				p.t.Fatal(err)
			}
		}, ".github/workflows/a.yml changed with .github/workflows/b/c.yml"},
		{"symlinks that stay inside, or lead to a program", func(p project) {
			p.write("old", "")
			p.write(".git/HEAD", "")
			p.write("pkg/x", "")
			p.write("node_modules/x", "")
			p.link("/etc/passwd", "before")
			p.link("/etc/passwd", ".git/before")
			time.Sleep(5 * fileTimeLag)
		}, func(p project) {
			p.link("old", "a")
			p.link(p.dir+"/none", "b")
			p.link("/bin/sh", "c")
			p.link("../node_modules", "pkg/node_modules")
			p.link("/etc/hostname", "node_modules/in")
		}, ""},
		{"symlinks that lead out, or to what is protected", func(p project) {
			p.write("d/x", "")
			p.write(".git/HEAD", "")
			p.write(".git/logs/x", "")
		}, func(p project) {
			p.link("/etc/hostname", "build")
			p.link("../../other", "d/out")
			p.link("/usr/local", "e")
			p.link("/usr/local", "node_modules")
			p.link("../../other", "d/node_modules")
			p.link(p.dir+"/.vscode/tasks.json", "f")
			p.link("config", ".git/COMMIT_EDITMSG")
			p.link("/nonexistent/x", ".git/logs/HEAD")
		}, "build created with e f node_modules .git/COMMIT_EDITMSG d/node_modules d/out .git/logs/HEAD"},
		{"a mode", func(p project) { p.write("gradlew", "") }, func(p project) {
			if err := os.Chmod(filepath.Join(p.dir, "gradlew"), 0o700); err != nil {
				p.t.Fatal(err)
			}
		}, "gradlew changed"},
		{
			"dependencies of a package", func(p project) { p.write("package.json", `{"scripts":{"test":"true"}}`) },
			func(p project) { p.write("package.json", `{"scripts":{"test":"true"},"dependencies":{"x":"1"}}`) }, "",
		},
		{
			"scripts of a package", func(p project) { p.write("package.json", `{"scripts":{"test":"true"}}`) },
			func(p project) {
				p.write("package.json", `{"scripts":{"test":"true","postinstall":"evil"}}`)
			}, "package.json changed",
		},
		{
			"a package that is none", func(p project) { p.write("package.json", `{`) },
			func(p project) { p.write("package.json", `{{`) }, "package.json changed",
		},
		{
			"a repository", func(p project) {
				p.write("old/.git/config", "")
				time.Sleep(5 * fileTimeLag)
			},
			func(p project) { p.write("a/b/.git/config", "[core]\n\tfsmonitor = evil\n") }, "a/b/.git created",
		},
		{
			"a deep repository with forged times", func(project) {}, func(p project) {
				p.write("1/2/3/4/5/6/.git/config", "")
				p.write("node_modules/x/.git/hooks/pre-commit", "")
				p.write("bare/HEAD", "")
				p.write("bare/config", "")
				p.write("bare/refs/x", "")
				p.write("bare/objects/x", "")
				for _, file := range []string{"1/2/3/4/5/6/.git/config", "bare/config"} {
					if err := os.Chtimes(filepath.Join(p.dir, file), time.Unix(1, 0), time.Unix(1, 0)); err != nil {
						p.t.Fatal(err)
					}
				}
			}, "1/2/3/4/5/6/.git created, bare created",
		},
		{"its own repository", func(project) {}, func(p project) { p.write(".git", "gitdir: x") }, ".git created"},
		{"a whole repository of its own", func(project) {}, func(p project) {
			p.write(".git/HEAD", "")
			p.write(".git/config", "")
			p.write(".git/hooks/pre-commit", "")
		}, ".git created"},
		{
			"hooks of a nested repository",
			func(p project) { p.write("old/.git/hooks/a", ""); time.Sleep(5 * fileTimeLag) },
			func(p project) { p.write("old/.git/hooks/a", "x") }, "old/.git created",
		},
		{
			"everything in subdirectories", func(p project) {
				p.write("a/.vscode/tasks.json", "")
				p.write("a/b/Makefile", "")
				p.write("old/.vscode/tasks.json", "")
				p.write("old/Makefile", "")
				time.Sleep(5 * fileTimeLag)
			},
			func(p project) {
				p.write("a/.vscode/tasks.json", "x")
				p.write("a/b/Makefile", "x")
				p.write("a/b/c/package.json", "{}")
				p.write("Makefile", "")
				p.write("a/b/.cargo/config.toml", "")
				p.write("a/b/.cargo/other", "")
				p.write("deep/1/2/3/4/5/6/7/.mcp.json", "")
				p.write("a/AGENTS.md", "")
				p.write("a/node_modules/x/Makefile", "")
				p.write("a/main.go", "")
			},
			"a/.vscode changed, a/b/.cargo/config.toml changed, deep/1/2/3/4/5/6/7/.mcp.json changed, " +
				"a/AGENTS.md changed, Makefile changed with a/b/Makefile a/b/c/package.json",
		},
		{
			"a name that the user took away", func(project) {},
			func(p project) { p.write("a/.exrc", "") }, "",
		},
		{
			"names that were moved", func(p project) {
				p.write("a/x/settings.json", "")
				p.write("a/y/bin/python", "")
				time.Sleep(5 * fileTimeLag)
			},
			func(p project) { p.move("a/x", "a/.vscode"); p.move("a/y", "a/.venv") },
			"a/.vscode changed, a/.venv/bin changed",
		},
		{
			"installed programs", func(p project) {
				p.write("node_modules/.bin/a", "")
				p.write(".venv/bin/python", "")
				p.write("x/.venv/bin/python", "")
				time.Sleep(5 * fileTimeLag)
			},
			func(p project) { p.write("node_modules/.bin/a", "x"); p.write("x/.venv/bin/python", "x") },
			"node_modules/.bin changed with x/.venv/bin",
		},
		{
			"a list of commands in a worktree and a submodule", func(p project) {
				p.write(".git/worktrees/w/HEAD", "")
				p.write(".git/modules/a/b/HEAD", "")
			},
			func(p project) {
				p.write(".git/worktrees/w/rebase-merge/git-rebase-todo", "exec evil")
				p.write(".git/modules/a/b/sequencer/todo", "pick")
			},
			".git/worktrees/w/rebase-merge/git-rebase-todo changed with .git/modules/a/b/sequencer/todo",
		},
		{
			"a list of commands in this worktree", func(p project) {
				p.write("elsewhere/HEAD", "")
				p.write(".git", "gitdir: elsewhere\n")
			},
			func(p project) { p.write("elsewhere/rebase-merge/git-rebase-todo", "exec evil") },
			"elsewhere/rebase-merge/git-rebase-todo changed",
		},
		{"a rebase", func(p project) { p.write(".git/HEAD", "") }, func(p project) {
			p.write(".git/rebase-merge/git-rebase-todo", "exec evil")
		}, ".git/rebase-merge/git-rebase-todo created"},
		{"too many files", func(p project) {
			for i := range maxFiles + 1 {
				p.write(filepath.Join(".husky", strconv.Itoa(i)), "")
			}
		}, func(p project) { p.write(".husky/more", ""); p.write(".envrc", "") }, ".envrc created, .husky changed"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			p := project{t, t.TempDir()}
			test.before(p)
			state := Take(protecting(p.dir, ".envrc", ".vscode", ".mcp.json", ".cargo/config*", ".git/config",
				".git/hooks"))
			test.after(p)
			var got []string
			for _, f := range state.Findings() {
				if f.Why == "" {
					t.Errorf("%s has no reason", f.Path)
				}
				text := f.Path + " " + string(f.How)
				if len(f.Others) > 0 {
					text += " with " + strings.Join(f.Others, " ")
				}
				got = append(got, strings.ReplaceAll(text, p.dir+"/", ""))
			}
			if strings.Join(got, ", ") != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

// However much a session writes, the list of what it changed stays short.
func TestFindings_AreFew(t *testing.T) {
	t.Parallel()
	p := project{t, t.TempDir()}
	state := Take(protecting(p.dir, ".envrc"))
	for i := range 5 * maxSingles {
		p.write(strconv.Itoa(i)+"/.envrc", "")
		p.write(strconv.Itoa(i)+"/Makefile", "")
		p.write(strconv.Itoa(i)+"/conftest.py", "")
	}
	found := state.Findings()
	if len(found) != maxSingles+1 {
		t.Fatalf("%d findings", len(found))
	}
	rest, builds := found[maxSingles-1], found[maxSingles]
	if rest.Total != 4*maxSingles+1 || rest.Group != severalSingles || len(rest.Others) != maxOthers {
		t.Errorf("%+v", rest)
	}
	if builds.Total != 10*maxSingles || builds.Group != string(protected.BuildFiles) ||
		builds.Path != p.dir+"/0/Makefile" {
		t.Errorf("%+v", builds)
	}
}

// What holds too many files to be compared is not listed each time.
func TestFindings_ACrowdedDirectoryThatDidNotChange(t *testing.T) {
	t.Parallel()
	p := project{t, t.TempDir()}
	for i := range maxFiles + 1 {
		p.write(".husky/"+strconv.Itoa(i), "")
	}
	time.Sleep(5 * fileTimeLag)
	if found := Take(protecting(p.dir)).Findings(); len(found) > 0 {
		t.Errorf("%+v", found)
	}
}

func BenchmarkTake(b *testing.B) { benchmark(b, func(p *policy.Policy) { Take(p) }) }

func BenchmarkFindings(b *testing.B) {
	benchmark(b, func(p *policy.Policy) { Take(p).Findings() })
}

// benchmark runs something in the directory that BENCH_PROJECT names.
func benchmark(b *testing.B, f func(p *policy.Policy)) {
	dir := os.Getenv("BENCH_PROJECT")
	if dir == "" {
		b.Skip("BENCH_PROJECT is not set")
	}
	p := &policy.Policy{Project: dir, Rules: written(dir)}
	for _, name := range protected.Names {
		if name.Group == "" {
			p.Protected = append(p.Protected, policy.Protected{Path: filepath.Join(dir, name.Path)})
		}
	}
	for b.Loop() {
		f(p)
	}
}

func TestTake_IsBounded(t *testing.T) {
	t.Parallel()
	p := project{t, t.TempDir()}
	for i := range 2 * maxFiles {
		p.write(".husky/"+strings.Repeat("x", i%200+1)+string(rune('a'+i/200)), "")
	}
	if got := len(Take(&policy.Policy{Project: p.dir, Rules: written(p.dir)}).before); got > maxFiles {
		t.Errorf("%d files were scanned", got)
	}
}

// A project with many files does not slow down each start: what holds too many
// is not compared, and the review says so.
func TestFindings_APatternInACrowdedDirectoryIsBounded(t *testing.T) {
	t.Parallel()
	p := project{t, t.TempDir()}
	for i := range maxEntries {
		p.write("d/"+strconv.Itoa(i), "")
	}
	pattern := filepath.Join(p.dir, "d", "*.x")
	state := Take(&policy.Policy{
		Project: p.dir, Rules: written(p.dir), Protected: []policy.Protected{{Path: pattern, Pattern: true}},
	})
	p.write("d/new.x", "")
	is := func(f Finding) bool { return f.Path == pattern && f.Why == whyUncompared }
	if findings := state.Findings(); !slices.ContainsFunc(findings, is) {
		t.Errorf("found %+v", findings)
	}
}

// A FIFO in the place of a directory does not hold up the end of a session.
func TestFindings_DoNotWaitForAFIFO(t *testing.T) {
	t.Parallel()
	p := project{t, t.TempDir()}
	state := Take(&policy.Policy{Project: p.dir, Rules: written(p.dir)})
	p.write("a/.git/HEAD", "")
	if err := syscall.Mkfifo(filepath.Join(p.dir, "a/.git/hooks"), 0o600); err != nil {
		t.Fatal(err)
	}
	done := make(chan []Finding, 1)
	go func() { done <- state.Findings() }()
	select {
	case found := <-done:
		if len(found) != 1 {
			t.Errorf("%+v", found)
		}
	case <-deadline.After(time.Minute):
		t.Error("it waits")
	}
}

// A session cannot hide a repository by making its directory unreadable.
func TestFindings_NameWhatCouldNotBeSearched(t *testing.T) {
	t.Parallel()
	p := project{t, t.TempDir()}
	asOrdinaryUser(t, p.dir)
	p.write("theirs/file", "")
	mode := func(name string, mode os.FileMode) {
		t.Helper()
		if err := os.Chmod(filepath.Join(p.dir, name), mode); err != nil {
			t.Fatal(err)
		}
	}
	mode("theirs", 0o300)
	t.Cleanup(func() { mode("theirs", 0o700) })
	time.Sleep(5 * fileTimeLag)
	state := Take(&policy.Policy{Project: p.dir, Rules: written(p.dir)})
	if found := state.Findings(); len(found) != 0 {
		t.Errorf("a directory that was unreadable before: %+v", found)
	}
	p.write("hidden/.git/config", "[core]\n\tfsmonitor = evil\n")
	mode("hidden", 0o300)
	t.Cleanup(func() { mode("hidden", 0o700) })
	if found := state.Findings(); len(found) != 1 || found[0].Path != p.dir || found[0].Why != whyUnsearched {
		t.Errorf("%+v", found)
	}
}

// 50,000 symlinks, in chains and loops, to files and to nowhere, are one finding,
// and what was left out is said.
func TestFindings_OfManyLinks(t *testing.T) {
	t.Parallel()
	p := project{t, t.TempDir()}
	state := Take(&policy.Policy{Project: p.dir, Rules: written(p.dir)})
	targets := []string{"/etc/hostname", "/proc/self/fd/0", "/nowhere", "../../../out", "loop", "0"}
	for dir := range 10 {
		for i := range 5000 {
			name := fmt.Sprintf("%d/%d", dir, i)
			if i == 0 {
				p.write(name, "")
				p.link("loop", fmt.Sprintf("%d/loop", dir))
				continue
			}
			p.link(targets[i%len(targets)], name)
		}
	}
	found := state.Findings()
	is := func(f Finding) bool { return f.Why == whyUnsearched }
	if len(found) != 2 || found[1].Group != string(links) || found[1].Total < maxHits || found[1].Total > 2*maxHits ||
		len(found[1].Others) != maxOthers || !slices.ContainsFunc(found, is) {
		t.Errorf("%d findings, %+v", len(found), found[:min(len(found), 2)])
	}
}

func TestIndex(t *testing.T) {
	t.Parallel()
	x := newIndex(protected.Names)
	for entry, want := range map[string]string{
		"Makefile": "Makefile*", "Makefile.in": "Makefile*", "eslint.config.mjs": "*.config.*js", "x.config.py": "",
		"docker-compose.yml": "*compose*.y*ml", "a.csproj": "*.*proj", "proj": "", ".cargo": ".cargo/config*",
		"main.go": "", "conftest.py": "conftest.py", "WORKSPACE": "WORKSPACE*", "package.json": "package.json",
	} {
		var got []string
		for _, name := range x.of(entry) {
			got = append(got, name.Path)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: %q, want %q", entry, got, want)
		}
	}
}

// A change of commands is listed however the file is written, and a change of
// dependencies is not.
func TestFindings_CommandsOfAPackage(t *testing.T) {
	t.Parallel()
	const good, evil = `{"test":"true"}`, `{"test":"true","postinstall":"evil"}`
	for name, after := range map[string]string{
		"plain":              `{"scripts":` + evil + `}`,
		"twice, first":       `{"scripts":` + evil + `,"scripts":` + good + `}`,
		"twice, last":        `{"scripts":` + good + `,"scripts":` + evil + `}`,
		"twice, escaped":     `{"scripts":` + evil + `,"\u0073cripts":` + good + `}`,
		"another case":       `{"scripts":` + evil + `,"Scripts":` + good + `}`,
		"another case first": `{"SCRIPTS":` + good + `,"scripts":` + evil + `}`,
		"a long s":           `{"scripts":` + evil + `,"ſcripts":` + good + `}`,
		"a command twice":    `{"scripts":{"test":"evil","test":"true"}}`,
		"hooks":              `{"scripts":` + good + `,"gitHooks":{"pre-commit":"evil"}}`,
		"hooks twice":        `{"scripts":` + good + `,"gitHooks":{"x":"evil"},"gitHooks":{}}`,
		"husky":              `{"scripts":` + good + `,"husky":{"hooks":{"pre-commit":"evil"}}}`,
		"on staged files":    `{"scripts":` + good + `,"lint-staged":{"*.js":["evil"]}}`,
		"in a list":          `{"scripts":` + good + `,"pre-commit":["evil"]}`,
		"simple hooks":       `{"scripts":` + good + `,"simple-git-hooks":{"pre-commit":"evil"}}`,
		"deep, twice":        `{"scripts":` + good + `,"husky":[{"a":{},"a":{}}]}`,
		"behind it":          `{"scripts":` + good + `}{"scripts":` + evil + `}`,
		"a mark":             "\ufeff" + `{"scripts":` + evil + `}`,
		"not UTF-8":          `{"scripts":` + good + `,"x":"` + "\xff" + `"}`,
		"a list":             `[{"scripts":` + evil + `}]`,
		"an object inside":   `{"scripts":{"test":{"x":"evil"}}}`,
		"a remark":           `{"scripts":` + evil + `/*"scripts":` + good + `*/}`,
		"not closed":         `{"scripts":` + evil,
		"dependencies":       `{"name":"x","scripts":` + good + `,"dependencies":{"y":"1","y":"2"}}`,
		"blanks around":      "\n{\n  \"scripts\": " + good + "\n}\n",
	} {
		p := project{t, t.TempDir()}
		p.write("package.json", `{"scripts":`+good+`}`)
		state := Take(protecting(p.dir))
		p.write("package.json", after)
		want := 1
		if name == "dependencies" || name == "blanks around" {
			want = 0
		}
		if found := state.Findings(); len(found) != want {
			t.Errorf("%s: %d findings: %v", name, len(found), found)
		}
	}
}
