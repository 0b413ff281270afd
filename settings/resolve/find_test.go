package resolve

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/fsguard"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/textfile"
)

func put(t *testing.T, dir string, names ...string) {
	t.Helper()
	for _, name := range names {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func TestFind(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	put(t, root, ".env", "z/.env", "a/b/.env", "a/b/.env.local", "a/.envrc", "node_modules/x/.env", ".git/x/.env",
		"a/keys/.env", "a/keys/x")
	if err := os.Symlink(filepath.Join(root, "a"), filepath.Join(root, "link")); err != nil {
		t.Fatal(err)
	}
	found, err := OS.Find(root, []string{".env", ".env.*", "keys"})
	for i := range found {
		found[i] = strings.TrimPrefix(found[i], root+"/")
	}
	want := []string{".env", "a/keys", "z/.env", "a/b/.env", "a/b/.env.local", "a/keys/.env"}
	if err != nil || !slices.Equal(found, want) {
		t.Errorf("%q, %v", found, err)
	}
}

// Many directories, or many files of one pattern, do not hold up a start, and
// the files of another pattern are still found.
func TestFind_IsBounded(t *testing.T) {
	t.Parallel()
	asked := 0
	endless := func(dir string) ([]fsguard.Entry, error) {
		asked++
		rare := "rare" + strconv.Itoa(asked%1000)
		// Two below each: paths that grow by each directory take too long to join.
		return []fsguard.Entry{
			{Name: "d", Type: os.ModeDir}, {Name: "e", Type: os.ModeDir}, {Name: "x"}, {Name: rare},
		}, nil
	}
	found, err := FindBy(endless, "/", []string{"x", "rare999"})
	if !errors.Is(err, ErrNotAllFound) || asked > MaxFindDirs {
		t.Errorf("%d directories: %v", asked, err)
	}
	of := map[string]int{}
	for _, path := range found {
		of[filepath.Base(path)]++
	}
	if of["x"] != MaxFound || of["rare999"] == 0 {
		t.Errorf("found %v", of)
	}
	failing := func(string) ([]fsguard.Entry, error) { return nil, fsguard.ErrNoAnswer }
	if _, err := FindBy(failing, "/", nil); !errors.Is(err, ErrNotAllFound) {
		t.Errorf("a directory that does not answer: %v", err)
	}
}

// What RememberFind remembers is what is there.
func TestRememberFind(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	put(t, root, "a/b/.env", "a/x")
	read := 0
	memory := findMemory{known: map[string]listing{}, racy: func(textfile.Signature) bool { read++; return false }}
	search := func() int {
		found, err := FindBy(memory.list, root, []string{".env"})
		if err != nil {
			t.Fatal(err)
		}
		return len(found)
	}
	if n := search(); n != 1 || read != 3 {
		t.Errorf("found %d, read %d", n, read)
	}
	if n := search(); n != 1 || read != 3 {
		t.Errorf("again: found %d, read %d", n, read)
	}
	put(t, root, "a/c/.env")
	if n := search(); n != 2 || read != 5 {
		t.Errorf("a new directory: found %d, read %d", n, read)
	}
	if err := os.Remove(filepath.Join(root, "a/b/.env")); err != nil {
		t.Fatal(err)
	}
	if n := search(); n != 1 || read != 6 {
		t.Errorf("a file less: found %d, read %d", n, read)
	}
}

// Empty directories are remembered, so they count.
func TestRememberFind_ForgetsEmptyDirectories(t *testing.T) {
	t.Parallel()
	m := findMemory{racy: func(textfile.Signature) bool { return false }, known: map[string]listing{}}
	for i := range maxRemembered {
		m.known[strconv.Itoa(i)] = listing{}
	}
	dir := t.TempDir()
	if _, err := m.list(dir); err != nil {
		t.Fatal(err)
	}
	if _, known := m.known[dir]; len(m.known) != 1 || !known {
		t.Errorf("it remembers %d directories", len(m.known))
	}
}

// The nearest symlinks are found, and nobody waits for more.
func TestLinks(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	put(t, root, "a/b/c/d/x", "node_modules/x", "file", "other/x")
	for _, name := range []string{
		"top", "a/b/c/third", "a/b/c/d/fourth", "a/1", "node_modules/no", "a/dir", "other/2",
	} {
		if err := os.Symlink("..", filepath.Join(root, name)); err != nil {
			t.Fatal(err)
		}
	}
	for name, search := range map[string]func([]string) ([]string, error){"": OS.Links, "again": RememberLinks()} {
		for range 2 {
			found, err := search([]string{root, filepath.Join(root, "other"), filepath.Join(root, "missing")})
			for i := range found {
				found[i] = strings.TrimPrefix(found[i], root+"/")
			}
			want := []string{"top", "other/2", "a/1", "a/dir", "other/2", "a/b/c/third"}
			if err != nil || !slices.Equal(found, want) {
				t.Errorf("%s: %q, %v", name, found, err)
			}
		}
	}
}

func TestLinks_IsBounded(t *testing.T) {
	t.Parallel()
	var roots []string
	for i := range 2 * maxLinkDirs {
		roots = append(roots, strconv.Itoa(i))
	}
	links := func(n int) (list []fsguard.Entry) {
		for i := range n {
			list = append(list, fsguard.Entry{Name: strconv.Itoa(i), Type: os.ModeSymlink})
		}
		return list
	}
	dirs := slices.Repeat([]fsguard.Entry{{Name: "d", Type: os.ModeDir}}, 100)
	for name, test := range map[string]struct {
		roots        []string
		entries      []fsguard.Entry
		err          error
		asked, found int
	}{
		"many symlinks":       {roots[:1], links(2 * maxLinksFound), nil, 1, maxLinksFound},
		"many directories":    {roots[:1], dirs, nil, 1 + maxLinkDirsOf, 0},
		"of one of several":   {roots[:3], dirs, nil, 3 * (1 + maxLinkDirsOf), 0},
		"of many roots":       {roots, dirs, nil, len(roots) + maxLinkDirs, 0},
		"one that is crowded": {roots[:1], nil, ErrNotAllFound, 1, 0},
		"no answer":           {roots[:1], nil, fsguard.ErrNoAnswer, 1, 0},
	} {
		asked := 0
		list := func(string) ([]fsguard.Entry, error) { asked++; return test.entries, test.err }
		found, err := LinksBy(list, test.roots)
		if !errors.Is(err, ErrNotAllFound) || asked != test.asked || len(found) != test.found {
			t.Errorf("%s: %d symlinks of %d directories: %v", name, len(found), asked, err)
		}
	}
}
