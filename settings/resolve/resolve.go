// Package resolve finds out where a path of a settings file leads.
//
// [Host.Expand] replaces ~ and $VAR. [View.Resolve] then follows the path as the
// kernel would and lists the symlinks that it crossed. A [View] remembers what it
// saw, so that all parts of one evaluation see the same file system.
package resolve

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
type FS struct {
	Lstat    func(path string) (fs.FileMode, error)
	Readlink func(path string) (string, error)
	ReadDir  func(path string) ([]string, error)
	ReadFile func(path string) ([]byte, error)
}

var OS = FS{
	Lstat: func(path string) (fs.FileMode, error) {
		info, err := fsguard.LstatPlain(path)
		if err != nil {
			return 0, err
		}
		return info.Mode(), nil
	},
	Readlink: fsguard.ReadlinkPlain,
	ReadDir: func(path string) ([]string, error) {
		// A session can fill a directory; nobody has this many settings files
		// or submodules.
		entries, err := fsguard.ReadDir(path, 10_000)
		var names []string
		for _, entry := range entries {
			names = append(names, entry.Name)
		}
		return names, err
	},
	ReadFile: func(path string) ([]byte, error) {
		data, _, err := textfile.Read(path)
		return data, err
	},
}

// maxLinks is Linux's own limit (path_resolution(7)); macOS stops at 32.
const maxLinks = 40

var ErrTooManyLinks = errors.New("too many levels of symlinks")

// resolved is where a path leads.
type Target struct {
	// path is absolute, clean and free of symlinks as far as it exists.
	Path string
	// mode is the file's; meaningless unless exists.
	Mode   fs.FileMode
	Exists bool
	// err is why the path could not be followed to its end, other than that it
	// is missing.
	Err error
	// detour: a ".." was taken from what is no directory, or is not there. The
	// kernel refuses to go this way.
	Detour bool
	// links are the symlinks crossed.
	Links []Link
	// steps are the names that were looked up, each in a directory without
	// symlinks: what a watch on the path has to watch.
	Steps []Step
}

// link is a symlink: its own path, and the directory it lies in.
type Link struct{ Path, Dir string }

type Step struct{ Dir, Name string }

// resolver walks paths. It remembers what it saw, so it lives only as long as
// one evaluation, and is not for several goroutines.
type View struct {
	FS   FS
	seen map[string]Entry
}

type Entry struct {
	Mode   fs.FileMode
	Target string // of a symlink
	Err    error
}

func NewView(f FS) *View { return &View{FS: f, seen: map[string]Entry{}} }

func (r *View) Entry(path string) Entry {
	if e, ok := r.seen[path]; ok {
		return e
	}
	var e Entry
	e.Mode, e.Err = r.FS.Lstat(path)
	if e.Err == nil && e.Mode&fs.ModeSymlink != 0 {
		e.Target, e.Err = r.FS.Readlink(path)
	}
	r.seen[path] = e
	return e
}

// resolve follows an absolute path as the kernel would: component by component,
// each ".." taken from where the walk is and not from the text. What is missing
// is kept by its text; the walk goes on, because a ".." behind it may lead back
// to what exists.
func (r *View) Resolve(path string) Target {
	result := Target{Path: "/", Mode: fs.ModeDir, Exists: true}
	rest := path
	for rest != "" {
		var name string
		name, rest, _ = strings.Cut(rest, "/")
		if name == "" || name == "." {
			continue
		}
		if name == ".." {
			result.Detour = result.Detour || !result.Exists || !result.Mode.IsDir()
			result.Path = filepath.Dir(result.Path)
			result.Mode, result.Exists = fs.ModeDir, true
			if e := r.Entry(result.Path); e.Err != nil {
				result.Exists = false
			}
			continue
		}
		next := filepath.Join(result.Path, name)
		if !result.Exists {
			// Below what is missing everything is.
			result.Path = next
			continue
		}
		result.Steps = append(result.Steps, Step{result.Path, name})
		e := r.Entry(next)
		if e.Err != nil {
			result.Path, result.Exists = next, false
			if !textfile.Missing(e.Err) && result.Err == nil {
				result.Err = e.Err
			}
			continue
		}
		if e.Mode&fs.ModeSymlink == 0 {
			result.Path, result.Mode, result.Exists = next, e.Mode, true
			continue
		}
		if len(result.Links) == maxLinks {
			result.Err = ErrTooManyLinks
			return result
		}
		result.Links = append(result.Links, Link{Path: next, Dir: result.Path})
		if filepath.IsAbs(e.Target) {
			result.Path = "/"
		}
		rest = e.Target + "/" + rest
	}
	return result
}
