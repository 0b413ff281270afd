package settings

import (
	"crypto/sha256"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/settings/document"
)

// tree builds a file system in a temporary directory and resolves paths as if
// that directory were the root, so that tests do not depend on the machine's
// own files. A name that ends in a slash is a directory, a value that starts
// with "-> " a symlink.
func tree(t testing.TB, entries map[string]string) files {
	t.Helper()
	root := t.TempDir()
	for name, content := range entries {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		var err error
		if target, ok := strings.CutPrefix(content, "-> "); ok {
			err = os.Symlink(target, path)
		} else if strings.HasSuffix(name, "/") {
			err = os.MkdirAll(path, 0o755)
		} else {
			err = os.WriteFile(path, []byte(content), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return rooted(root)
}

// rooted is osFiles below another root. The resolver asks for no path that
// crosses a symlink, so prefixing is enough.
func rooted(root string) files {
	return files{
		lstat:    func(path string) (fs.FileMode, error) { return osFiles.lstat(filepath.Join(root, path)) },
		readlink: func(path string) (string, error) { return osFiles.readlink(filepath.Join(root, path)) },
		readDir:  func(path string) ([]string, error) { return osFiles.readDir(filepath.Join(root, path)) },
		readFile: func(path string) ([]byte, error) { return osFiles.readFile(filepath.Join(root, path)) },
	}
}

// inMemory is the tree of tree without a disk, for tests that resolve paths by
// the hundred thousand.
func inMemory(entries map[string]string) files {
	type node struct {
		mode    fs.FileMode
		content string
		names   []string
	}
	nodes := map[string]*node{"/": {mode: fs.ModeDir}}
	put := func(path string, n *node) {
		if nodes[path] == nil || n.mode == 0 || n.content != "" {
			nodes[path] = n
		}
		for parent := filepath.Dir(path); path != "/"; path, parent = parent, filepath.Dir(parent) {
			if nodes[parent] == nil {
				nodes[parent] = &node{mode: fs.ModeDir}
			}
			if name := filepath.Base(path); !slices.Contains(nodes[parent].names, name) {
				nodes[parent].names = append(nodes[parent].names, name)
			}
		}
	}
	for name, content := range entries {
		n := &node{content: content}
		if target, ok := strings.CutPrefix(content, "-> "); ok {
			n.mode, n.content = fs.ModeSymlink, target
		} else if strings.HasSuffix(name, "/") {
			n.mode = fs.ModeDir
		}
		put(filepath.Clean(name), n)
	}
	look := func(path string) (*node, error) {
		if n := nodes[path]; n != nil {
			return n, nil
		}
		return &node{}, fs.ErrNotExist
	}
	return files{
		lstat:    func(path string) (fs.FileMode, error) { n, err := look(path); return n.mode, err },
		readlink: func(path string) (string, error) { n, err := look(path); return n.content, err },
		readDir:  func(path string) ([]string, error) { n, err := look(path); return n.names, err },
		readFile: func(path string) ([]byte, error) { n, err := look(path); return []byte(n.content), err },
	}
}

const (
	userFile    = "/home/u/.config/zed/settings.json"
	projectFile = "/home/u/project/.zed/settings.json"
)

// snapshotOf is a snapshot over a tree, with the sandbox blocks of the user's
// file and of the project's; "" leaves a file out.
func snapshotOf(t testing.TB, f files, user, project string) *Snapshot {
	t.Helper()
	s := &Snapshot{
		host:  host{platform: "linux", home: "/home/u", env: map[string]string{"HOME": "/home/u", "CACHE": "/home/u/.cache"}},
		files: f, projectDir: "/home/u/project",
	}
	if user != "" {
		s.user = []fileState{stateOf(t, userFile, user)}
	}
	if project != "" {
		state := stateOf(t, projectFile, project)
		s.project = &state
	}
	return s
}

func stateOf(t testing.TB, file, block string) fileState {
	t.Helper()
	if !json.Valid([]byte(block)) {
		t.Fatalf("not JSON: %s", block)
	}
	decoded, problem := document.Decode([]byte(`{"terminal": {"sandbox": `+block+`}}`), "linux", document.Editor)
	if problem != nil {
		t.Fatalf("decode %s: %s", block, problem)
	}
	return fileState{file: file, exists: true, read: true, good: decoded, digest: sha256.Sum256([]byte(block))}
}

// accessOf is what the compiled policy grants for a path, as names.
func accessOf(c Compiled, path string) string {
	granted := cover{}
	for _, rule := range c.Policy.Rules {
		granted.add(rule.Path, rule.Access)
	}
	return granted.at(path).String()
}

// said joins the diagnostics of a file, one a line.
func said(c Compiled, file string) string {
	var out strings.Builder
	for _, d := range c.Diagnostics {
		if d.File == file {
			out.WriteString(d.Diagnostic.String() + "\n")
		}
	}
	return out.String()
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
