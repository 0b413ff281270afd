package settings

import (
	"errors"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/sandbox-sidecar/sandbox-sidecar/fsguard"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/textfile"
)

// files is the part of the file system that resolution needs; tests put another
// one in its place. No symlink may lead to what lstat and readlink are asked
// about.
type files struct {
	lstat    func(path string) (fs.FileMode, error)
	readlink func(path string) (string, error)
	readDir  func(path string) ([]string, error)
	readFile func(path string) ([]byte, error)
}

var osFiles = files{
	lstat: func(path string) (fs.FileMode, error) {
		info, err := fsguard.LstatPlain(path)
		if err != nil {
			return 0, err
		}
		return info.Mode(), nil
	},
	readlink: fsguard.ReadlinkPlain,
	readDir: func(path string) ([]string, error) {
		// A session can fill a directory; nobody has this many settings files
		// or submodules.
		entries, err := fsguard.ReadDir(path, 10_000)
		var names []string
		for _, entry := range entries {
			names = append(names, entry.Name)
		}
		return names, err
	},
	readFile: func(path string) ([]byte, error) {
		data, _, err := textfile.Read(path)
		return data, err
	},
}

// maxLinks is Linux's own limit (path_resolution(7)); macOS stops at 32.
const maxLinks = 40

var errTooManyLinks = errors.New("too many levels of symlinks")

// resolved is where a path leads.
type resolved struct {
	// path is absolute, clean and free of symlinks as far as it exists.
	path string
	// mode is the file's; meaningless unless exists.
	mode   fs.FileMode
	exists bool
	// err is why the path could not be followed to its end, other than that it
	// is missing.
	err error
	// detour: a ".." was taken from what is no directory, or is not there. The
	// kernel refuses to go this way.
	detour bool
	// links are the symlinks crossed.
	links []link
	// steps are the names that were looked up, each in a directory without
	// symlinks: what a watch on the path has to watch.
	steps []step
}

// link is a symlink: its own path, and the directory it lies in.
type link struct{ path, dir string }

type step struct{ dir, name string }

// resolver walks paths. It remembers what it saw, so it lives only as long as
// one evaluation, and is not for several goroutines.
type resolver struct {
	files files
	seen  map[string]entry
}

type entry struct {
	mode   fs.FileMode
	target string // of a symlink
	err    error
}

func newResolver(f files) *resolver { return &resolver{files: f, seen: map[string]entry{}} }

func (r *resolver) entry(path string) entry {
	if e, ok := r.seen[path]; ok {
		return e
	}
	var e entry
	e.mode, e.err = r.files.lstat(path)
	if e.err == nil && e.mode&fs.ModeSymlink != 0 {
		e.target, e.err = r.files.readlink(path)
	}
	r.seen[path] = e
	return e
}

// resolve follows an absolute path as the kernel would: component by component,
// each ".." taken from where the walk is and not from the text. What is missing
// is kept by its text; the walk goes on, because a ".." behind it may lead back
// to what exists.
func (r *resolver) resolve(path string) resolved {
	result := resolved{path: "/", mode: fs.ModeDir, exists: true}
	rest := path
	for rest != "" {
		var name string
		name, rest, _ = strings.Cut(rest, "/")
		if name == "" || name == "." {
			continue
		}
		if name == ".." {
			result.detour = result.detour || !result.exists || !result.mode.IsDir()
			result.path = filepath.Dir(result.path)
			result.mode, result.exists = fs.ModeDir, true
			if e := r.entry(result.path); e.err != nil {
				result.exists = false
			}
			continue
		}
		next := filepath.Join(result.path, name)
		if !result.exists {
			// Below what is missing everything is.
			result.path = next
			continue
		}
		result.steps = append(result.steps, step{result.path, name})
		e := r.entry(next)
		if e.err != nil {
			result.path, result.exists = next, false
			if !textfile.Missing(e.err) && result.err == nil {
				result.err = e.err
			}
			continue
		}
		if e.mode&fs.ModeSymlink == 0 {
			result.path, result.mode, result.exists = next, e.mode, true
			continue
		}
		if len(result.links) == maxLinks {
			result.err = errTooManyLinks
			return result
		}
		result.links = append(result.links, link{path: next, dir: result.path})
		if filepath.IsAbs(e.target) {
			result.path = "/"
		}
		rest = e.target + "/" + rest
	}
	return result
}
