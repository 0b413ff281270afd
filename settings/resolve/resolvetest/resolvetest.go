// Package resolvetest makes file systems for the tests of path resolution.
package resolvetest

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sandbox-sidecar/sandbox-sidecar/fsguard"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/resolve"
)

// Tree builds a file system in a temporary directory and resolves paths as if
// that directory were the root, so that tests do not depend on the machine's
// own files. A name that ends in a slash is a directory. A value that starts
// with "-> " is a symlink.
func Tree(t testing.TB, entries map[string]string) resolve.FS {
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
	return Rooted(root)
}

// Rooted is resolve.OS below another root. A view asks for no path that crosses
// a symlink, so a prefix is enough.
func Rooted(root string) resolve.FS {
	return resolve.FS{
		Lstat:    func(path string) (fs.FileMode, error) { return resolve.OS.Lstat(filepath.Join(root, path)) },
		Readlink: func(path string) (string, error) { return resolve.OS.Readlink(filepath.Join(root, path)) },
		ReadDir:  func(path string) ([]string, error) { return resolve.OS.ReadDir(filepath.Join(root, path)) },
		ReadFile: func(path string) ([]byte, error) { return resolve.OS.ReadFile(filepath.Join(root, path)) },
		Dirs:     func(path string) ([]string, error) { return resolve.OS.Dirs(filepath.Join(root, path)) },
		Find: func(dir string, patterns []string) ([]string, error) {
			paths, err := resolve.OS.Find(filepath.Join(root, dir), patterns)
			for i := range paths {
				paths[i] = strings.TrimPrefix(paths[i], root)
			}
			return paths, err
		},
		Links: func(dirs []string) ([]string, error) {
			var below []string
			for _, dir := range dirs {
				below = append(below, filepath.Join(root, dir))
			}
			paths, err := resolve.OS.Links(below)
			for i := range paths {
				paths[i] = strings.TrimPrefix(paths[i], root)
			}
			return paths, err
		},
		Modes: func(path string) (resolve.Modes, error) { return resolve.OS.Modes(filepath.Join(root, path)) },
		Oldest: func(dir, file string, most int) ([]string, error) {
			return resolve.OS.Oldest(filepath.Join(root, dir), file, most)
		},
		Hostname: resolve.OS.Hostname, HomeOf: resolve.OS.HomeOf, Addresses: resolve.OS.Addresses,
	}
}

// Counted answers as f does, and counts what files and directories are asked to
// hold: by the function and the path, such as "ReadFile /etc/hosts". It is no good
// for several goroutines.
func Counted(f resolve.FS, asked map[string]int) resolve.FS {
	counted := f
	counted.ReadFile = func(path string) ([]byte, error) { asked["ReadFile "+path]++; return f.ReadFile(path) }
	counted.ReadDir = func(path string) ([]string, error) { asked["ReadDir "+path]++; return f.ReadDir(path) }
	counted.Dirs = func(path string) ([]string, error) { asked["Dirs "+path]++; return f.Dirs(path) }
	counted.Modes = func(path string) (resolve.Modes, error) { asked["Modes "+path]++; return f.Modes(path) }
	return counted
}

// InMemory is Tree without a disk, for tests that resolve many paths.
func InMemory(entries map[string]string) resolve.FS {
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
	find := func(path string) (*node, error) {
		if n := nodes[path]; n != nil {
			return n, nil
		}
		return &node{}, fs.ErrNotExist
	}
	list := func(dir string) (list []fsguard.Entry, err error) {
		n, err := find(dir)
		for _, name := range n.names {
			list = append(list, fsguard.Entry{Name: name, Type: nodes[filepath.Join(dir, name)].mode})
		}
		return list, err
	}
	return resolve.FS{
		Lstat:    func(path string) (fs.FileMode, error) { n, err := find(path); return n.mode, err },
		Readlink: func(path string) (string, error) { n, err := find(path); return n.content, err },
		ReadDir:  func(path string) ([]string, error) { n, err := find(path); return n.names, err },
		ReadFile: func(path string) ([]byte, error) { n, err := find(path); return []byte(n.content), err },
		Dirs: func(path string) ([]string, error) {
			n, err := find(path)
			var dirs []string
			for _, name := range n.names {
				if name == ".git" || nodes[filepath.Join(path, name)].mode.IsDir() {
					dirs = append(dirs, name)
				}
			}
			return dirs, err
		},
		Find: func(root string, patterns []string) ([]string, error) {
			return resolve.FindBy(list, root, patterns)
		},
		Links: func(roots []string) ([]string, error) { return resolve.LinksBy(list, roots) },
		Oldest: func(dir, file string, most int) ([]string, error) {
			return resolve.OldestBy(
				func(dir string) ([]string, error) { n, err := find(dir); return n.names, err },
				func(path string) (time.Time, error) { _, err := find(path); return time.Time{}, err },
				dir, file, most,
			)
		},
		Modes: func(path string) (resolve.Modes, error) {
			n, err := find(path)
			var entries []fsguard.Entry
			for _, name := range n.names {
				mode := nodes[filepath.Join(path, name)].mode
				if mode.IsRegular() {
					mode |= 0o644
				}
				entries = append(entries, fsguard.Entry{Name: name, Type: mode})
			}
			return resolve.NewModes(entries), err
		},
		Hostname: resolve.OS.Hostname, HomeOf: resolve.OS.HomeOf, Addresses: resolve.OS.Addresses,
	}
}
