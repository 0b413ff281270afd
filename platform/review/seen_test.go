package review

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// sessions are sessions of a project whose reviews keep what they have met.
type sessions struct {
	project
	memory string
	names  []string // that are protected beside .vscode
}

// run is a session that does something. It returns the paths that its review names.
func (s sessions) run(do func()) string {
	s.t.Helper()
	time.Sleep(5 * fileTimeLag) // what was before is old
	state := Take(protecting(s.dir, append([]string{".vscode"}, s.names...)...))
	state.Remember(s.memory)
	do()
	var paths []string
	for _, f := range state.Findings() {
		for _, path := range append([]string{f.Path}, f.Others...) {
			rest, _ := filepath.Rel(s.dir, path)
			paths = append(paths, rest)
		}
	}
	slices.Sort(paths)
	return strings.Join(paths, " ")
}

func (s sessions) expect(what, want string, do func()) {
	s.t.Helper()
	if got := s.run(do); got != want {
		s.t.Errorf("%s: %q, want %q", what, got, want)
	}
}

// What an earlier session has left where no search looks, the review names once a
// later one moves the directory. What it has met before, it does not name again.
func TestSeen_WhatComesWithADirectory(t *testing.T) {
	t.Parallel()
	for _, remembers := range []bool{true, false} {
		s := sessions{project: project{t, t.TempDir()}}
		if remembers {
			s.memory = filepath.Join(t.TempDir(), "made/when/needed")
		}
		s.write("old/Makefile", "")
		s.expect("before", "known/Makefile", func() {
			s.write("known/Makefile", "")
			s.write("node_modules/a/.vscode/tasks.json", "")
			s.write("node_modules/a/deep/Makefile", "")
			s.write("node_modules/a/repository/.git/HEAD", "")
			s.write("node_modules/a/repository/.git/config", "")
			s.link("/etc/hostname", "node_modules/a/out")
			s.write("node_modules/b/HEAD", "")
			s.write("node_modules/b/config", "")
			s.write("node_modules/b/objects/x", "")
			s.write("node_modules/b/refs/x", "")
			s.write("node_modules/c/.git/HEAD", "")
			s.write("node_modules/c/.git/config", "")
			s.write("node_modules/pointer/.git", "gitdir: /x")
		})
		s.expect("nothing", "", func() { s.write("node_modules/late/Makefile", "") })
		s.expect("what is known is moved", "", func() { s.move("known", "other"); s.move("old", "older") })
		s.expect("and back", "", func() { s.move("other", "known") })
		want := "bare c/.git late/Makefile pointer/.git sub/.vscode sub/deep/Makefile sub/out sub/repository/.git"
		if !remembers {
			want = "" // the control: nothing is new
		}
		s.write("c/x", "")
		s.expect("what was not searched is moved", want, func() {
			s.move("node_modules/a", "sub")
			s.move("node_modules/b", "bare")
			s.move("node_modules/c/.git", "c/.git")
			s.move("node_modules/pointer", "pointer")
			s.move("node_modules/late", "late")
		})
		s.expect("it is known now", "", func() {})
	}
}

// A relative symlink leads elsewhere once its directory is moved.
func TestSeen_ALinkThatIsMoved(t *testing.T) {
	t.Parallel()
	s := sessions{project: project{t, t.TempDir()}, memory: t.TempDir()}
	s.expect("a link inside", "", func() {
		s.write("a/b/x", "")
		s.link("../../file", "a/b/link")
		s.write("c/x", "")
		s.link("x", "c/link")
	})
	s.expect("moved", "b/link", func() { s.move("a/b", "b"); s.move("c", "d") })
}

// Two kinds of sessions find different names. What one has met the other knows, and
// each has to meet everything first.
func TestSeen_OfSeveralKinds(t *testing.T) {
	t.Parallel()
	s := sessions{project: project{t, t.TempDir()}, memory: t.TempDir()}
	s.expect("one kind", "a/Makefile", func() { s.write("a/Makefile", "") })
	s.names = []string{"**/mine"}
	s.expect("another kind, first", "", func() {
		s.write("node_modules/b/Makefile", "")
		s.write("node_modules/d/mine", "")
	})
	s.names = nil
	s.expect("one kind made it", "", func() { s.write("node_modules/c/Makefile", "") })
	s.names = []string{"**/mine"}
	s.expect("another moves it", "c/Makefile d/mine", func() {
		s.move("node_modules/c", "c")
		s.move("node_modules/d", "d")
	})
	s.names = nil
	s.expect("one kind", "b/Makefile", func() { s.move("node_modules/b", "b") })
	s.expect("it is known", "", func() { s.move("c", "e") })
}

// A session that keeps the search from seeing everything does not hide what the next
// one moves: that is said.
func TestSeen_AfterAGap(t *testing.T) {
	t.Parallel()
	for name, before := range map[string]func(s sessions){
		"after some":    func(s sessions) { s.expect("first", "a/Makefile", func() { s.write("a/Makefile", "") }) },
		"after nothing": func(s sessions) { s.expect("first", "", func() {}) },
		"at once":       func(sessions) {},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := sessions{project: project{t, t.TempDir()}, memory: t.TempDir()}
			before(s)
			s.expect("too much", ".", func() {
				s.write("node_modules/b/Makefile", "")
				for i := range maxEntries {
					s.write("many/"+strconv.Itoa(i), "")
				}
			})
			if err := os.RemoveAll(filepath.Join(s.dir, "many")); err != nil {
				t.Fatal(err)
			}
			s.expect("a gap", ".", func() { s.move("node_modules/b", "b") })
			s.expect("none", "", func() {})
		})
	}
}

// Programs outside make, change and move files between sessions. That is no news,
// unless they bring a directory that was made before the last search.
func TestSeen_WhatOthersDo(t *testing.T) {
	t.Parallel()
	s := sessions{project: project{t, t.TempDir()}, memory: t.TempDir()}
	s.expect("first", "a/Makefile", func() { s.write("a/Makefile", "") })
	s.write("b/Makefile", "")
	s.write("a/Makefile", "changed")
	s.write("a/.git/config", "")
	s.expect("made outside", "", func() {})
	s.move("b", "c")
	s.expect("moved outside", "", func() {})

	// The directory is another one.
	s.move("../"+filepath.Base(s.dir), "../kept")
	if err := os.Mkdir(s.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	s.move("../kept/a", "new")
	s.expect("in the place of another", "", func() {})
	s.move("../kept/c", "c")
	s.expect("what was made before and comes later", "c/Makefile", func() {})
}

// What is kept is bounded, and what cannot be understood counts as nothing.
func TestSeen_OfBadFiles(t *testing.T) {
	t.Parallel()
	s := sessions{project: project{t, t.TempDir()}, memory: t.TempDir()}
	s.expect("first", "a/Makefile", func() {
		s.write("a/Makefile", "")
		s.write("node_modules/x/Makefile", "")
	})
	files, err := filepath.Glob(filepath.Join(s.memory, "*.json"))
	if err != nil || len(files) != 1 {
		t.Fatalf("%q, %v", files, err)
	}
	future := time.Now().Add(time.Hour).UnixNano()
	begun := regexp.MustCompile(`"begun":\d+`)
	good, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	for what, text := range map[string]string{
		"empty": "", "garbage": "{", "newer": strings.Replace(string(good), `"version":1`, `"version":2`, 1),
		"of the future": begun.ReplaceAllString(string(good), fmt.Sprintf(`"begun":%d`, future)),
		"of another":    strings.Replace(string(good), `"top":`, `"top":1`, 1),
		"long":          string(good) + strings.Repeat(" ", maxSeenFile),
	} {
		if err := os.WriteFile(files[0], []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		s.expect(what, "", func() { s.move("node_modules/x", "y") })
		s.move("y", "node_modules/x")
	}
	if err := os.WriteFile(files[0], good, 0o600); err != nil {
		t.Fatal(err)
	}
	s.expect("the control", "y/Makefile", func() { s.move("node_modules/x", "y") })

	for i := range maxSeenDirs + 10 {
		old := filepath.Join(s.memory, strconv.Itoa(i)+".json")
		if err := os.WriteFile(old, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s = sessions{project: project{t, t.TempDir()}, memory: s.memory}
	s.expect("one more", "b/Makefile", func() { s.write("b/Makefile", "") })
	if left, _ := os.ReadDir(s.memory); len(left) != maxSeenDirs {
		t.Errorf("%d files", len(left))
	}
}
