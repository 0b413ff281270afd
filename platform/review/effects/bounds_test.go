package effects

import (
	"compress/zlib"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// refs writes many refs to HEAD, as files or into packed-refs.
func (s *scene) refs(n int, packed bool) {
	s.t.Helper()
	id := s.sh("git rev-parse HEAD")
	var lines strings.Builder
	for i := range n {
		name := fmt.Sprintf("refs/heads/many/%02d/%06d", i%50, i)
		if packed {
			lines.WriteString(id + " " + name + "\n")
			continue
		}
		s.write(".git/"+name, id+"\n")
	}
	if packed {
		s.write(".git/packed-refs", lines.String())
	}
}

func (s *scene) write(name, text string) {
	s.t.Helper()
	path := filepath.Join(s.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		s.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		s.t.Fatal(err)
	}
}

// A repository with very many refs is compared if they are packed. Of files
// beyond the bound the review says that it does not know them, but only if one is
// new.
func TestEffects_OfManyRefs(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.refs(100_000, true)
	state := Take(s.scope())
	s.sh(`git tag evil $(eval "$EVIL")`)
	if got := s.lines(state.Effects(acts)); got != `stored .vscode/tasks.json tag "evil"` {
		t.Errorf("packed: %s", got)
	}

	s = newScene(t)
	s.refs(maxLoose+100, false)
	harness.Eventually(t, "no file is new", func() bool { return s.lines(Take(s.scope()).Effects(acts)) == "" })
	state = Take(s.scope())
	s.sh(`git branch zzz $(eval "$EVIL")`)
	want := `stored .vscode/tasks.json branch "zzz"; moved .git/refs/heads/zzz`
	if got := s.lines(state.Effects(acts)); got != want {
		t.Errorf("files: %s", got)
	}
	s.sh("git branch -D zzz")
	if got := s.lines(state.Effects(acts)); got != "unknown .git/refs" {
		t.Errorf("a file is gone: %s", got)
	}
	state.Unwritten()
	if got := s.lines(state.Effects(acts)); got != "" {
		t.Errorf("by others: %s", got)
	}
}

// Of repositories that are too many to compare, it is said that they have changed.
func TestEffects_OfTheRest(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"git log; echo b >b":              "",
		"git tag x HEAD":                  "unknown .git",
		`git branch evil $(eval "$EVIL")`: "unknown .git",
		"echo b >b; git add b":            "unknown .git",
		"mkdir .git/sequencer; echo exec evil >.git/sequencer/todo": "unknown .git",
		"git pack-refs --all": "unknown .git",
		"echo x >.git/description; mkdir .git/x; git config a.b c": "",
		"git tag -d old": "unknown .git",
		"echo $(git rev-parse HEAD) >>.git/refs/tags/old && git log": "unknown .git",
	} {
		t.Run(line, func(t *testing.T) {
			t.Parallel()
			s := newScene(t)
			s.sh("git tag old; git status")
			scope := s.scope()
			scope.Rest, scope.Repositories = scope.Repositories, nil
			harness.Eventually(t, "nothing is new", func() bool {
				scope.New = s.scope().New
				return s.lines(Take(scope).Effects(acts)) == ""
			})
			state := Take(scope)
			s.sh(line)
			if got := s.lines(state.Effects(acts)); got != want {
				t.Errorf("%q, want %q", got, want)
			}
			state.Unwritten()
			if got := s.lines(state.Effects(acts)); got != "" {
				t.Errorf("by others: %q", got)
			}
		})
	}
}

// More new refs than are compared are reported by name.
func TestEffects_OfManyNewRefs(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	state := Take(s.scope())
	s.sh(fmt.Sprintf(`for i in $(seq %d); do echo "create refs/tags/t$i $(echo $i | git commit-tree HEAD^{tree} -p HEAD)"; done |
git update-ref --stdin`, maxTips+10))
	got := s.lines(state.Effects(acts))
	if !strings.HasPrefix(got, "unknown ") || strings.Count(got, ".git/refs/tags/") != 10 {
		t.Error(got)
	}
}

// A git that does not end, or is not there, holds nothing up, and what it did not
// say is reported.
func TestEffects_WithoutAnAnswer(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	state := Take(s.scope())
	s.sh(`git tag evil $(eval "$EVIL"); mkfifo .git/pipe; printf '[include]\n\tpath = pipe\n' >>.git/config`)
	state.time = 300 * time.Millisecond
	if got := s.lines(state.Effects(acts)); got != "unknown .git/refs/tags/evil" {
		t.Errorf("a git that hangs: %s", got)
	}
	s.sh("rm .git/pipe; mv .git/objects .git/none")
	state.time = time.Minute
	if got := s.lines(state.Effects(acts)); got != "unknown .git/refs/tags/evil" {
		t.Errorf("no repository to git: %s", got)
	}
	s.sh("mv .git/none .git/objects")
	state.programs = []string{"/nonexistent/git"}
	if got := s.lines(state.Effects(acts)); got != "unknown .git/refs/tags/evil" {
		t.Errorf("no git: %s", got)
	}
}

// A small file can be a large commit. git does not read it into memory: without a
// bound it would, and find that nothing of "evil" is in the way.
func TestEffects_OfALargeCommit(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	state := Take(s.scope())
	s.sh(`git tag evil $(eval "$EVIL")`)
	for size, want := range map[int]string{
		64 << 20:  `stored .vscode/tasks.json tag "evil"; unknown .git/refs/tags/large`,
		300 << 20: "unknown .git/refs/tags/evil,.git/refs/tags/large",
	} {
		id := fmt.Sprintf("12%038d", size)
		s.sh("mkdir -p .git/objects/12; echo " + id + " >.git/refs/tags/large")
		file, err := os.Create(filepath.Join(s.dir, ".git/objects/12", id[2:]))
		if err != nil {
			t.Fatal(err)
		}
		packed, _ := zlib.NewWriterLevel(file, zlib.BestSpeed)
		_, _ = fmt.Fprintf(packed, "commit %d\x00", size)
		for zeros := make([]byte, 1<<20); size > 0; size -= len(zeros) {
			_, _ = packed.Write(zeros)
		}
		if err := errors.Join(packed.Close(), file.Close()); err != nil {
			t.Fatal(err)
		}
		if got := s.lines(state.Effects(acts)); got != want {
			t.Errorf("%s\nwant %s", got, want)
		}
	}
}

// When time is up, no more files are compared.
func TestInPlace_IsBounded(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	f := file{path: "a", mode: "100644", id: s.sh("git hash-object a")}
	for end, want := range map[time.Time]bool{time.Now().Add(time.Hour): true, time.Now().Add(-time.Second): false} {
		if got := (&comparison{end: end}).inPlace(f, filepath.Join(s.dir, f.path)); got != want {
			t.Errorf("until %s: %v", end, got)
		}
	}
}

// What is no regular file holds nothing up.
func TestTake_OfBadFiles(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.sh("mkfifo .git/refs/heads/pipe .git/packed-refs; ln -s . .git/refs/heads/loop; mkdir .git/ORIG_HEAD; ln -s nothing .git/FETCH_HEAD")
	harness.Eventually(t, "nothing is new", func() bool { return s.lines(Take(s.scope()).Effects(acts)) == "" })
	state := Take(s.scope())
	s.sh(`rm -f .git/refs/heads/loop .git/refs/heads/pipe .git/packed-refs; git tag evil $(eval "$EVIL")`)
	if got := s.lines(state.Effects(acts)); !strings.Contains(got, `stored .vscode/tasks.json tag "evil"`) {
		t.Error(got)
	}
}

// A git that is old, broken, or talks nonsense says nothing, and that is reported.
func TestEffects_OfABadGit(t *testing.T) {
	t.Parallel()
	for name, script := range map[string]string{
		"garbage":        "head -c 100000 /dev/urandom",
		"too much":       "exec yes 0000000000000000000000000000000000000000",
		"an old one":     `echo "error: unknown option" >&2; exit 129`,
		"nothing":        "exit 0",
		"it dies":        "kill -9 $$",
		"half an answer": `exec git "$@" | head -c 30`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t)
			program := filepath.Join(s.home, "git")
			if err := os.WriteFile(program, []byte("#!/bin/sh\n"+script+"\n"), 0o700); err != nil {
				t.Fatal(err)
			}
			state := Take(s.scope())
			s.sh(`git tag evil $(eval "$EVIL")`)
			state.programs = []string{program}
			if got := s.lines(state.Effects(acts)); got != "unknown .git/refs/tags/evil" {
				t.Error(got)
			}
		})
	}
}
