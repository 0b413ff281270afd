package review

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
)

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
		}, ".github/workflows/a.yml removed, .github/workflows/b/c.yml created"},
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
		{
			"hooks of a nested repository", func(p project) { p.write("old/.git/hooks/a", ""); time.Sleep(5 * fileTimeLag) },
			func(p project) { p.write("old/.git/hooks/a", "x") }, "old/.git created",
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
			state := Take(&policy.Policy{Project: p.dir, Protected: []policy.Protected{{Path: p.dir + "/.envrc"}}})
			test.after(p)
			var got []string
			for _, f := range state.Findings() {
				if f.Why == "" {
					t.Errorf("%s has no reason", f.Path)
				}
				got = append(got, strings.TrimPrefix(f.Path, p.dir+"/")+" "+string(f.How))
			}
			if strings.Join(got, ", ") != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestTake_IsBounded(t *testing.T) {
	t.Parallel()
	p := project{t, t.TempDir()}
	for i := range 2 * maxFiles {
		p.write(".husky/"+strings.Repeat("x", i%200+1)+string(rune('a'+i/200)), "")
	}
	if got := len(Take(&policy.Policy{Project: p.dir}).before); got > maxFiles {
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
	state := Take(&policy.Policy{Project: p.dir, Protected: []policy.Protected{{Path: pattern, Pattern: true}}})
	p.write("d/new.x", "")
	if findings := state.Findings(); !slices.Contains(findings, Finding{Path: pattern, How: Changed, Why: whyUncompared}) {
		t.Errorf("found %+v", findings)
	}
}

// A FIFO in the place of a directory does not hold up the end of a session.
func TestFindings_DoNotWaitForAFIFO(t *testing.T) {
	t.Parallel()
	p := project{t, t.TempDir()}
	state := Take(&policy.Policy{Project: p.dir})
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
	case <-time.After(10 * time.Second):
		t.Error("it waits")
	}
}

// A session cannot hide a repository by making its directory unreadable.
func TestFindings_NameWhatCouldNotBeSearched(t *testing.T) {
	t.Parallel()
	if os.Geteuid() == 0 {
		t.Skip("root reads every directory")
	}
	p := project{t, t.TempDir()}
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
	state := Take(&policy.Policy{Project: p.dir})
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
