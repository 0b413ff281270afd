package review

import (
	"io/fs"
	"path/filepath"
	"slices"

	"github.com/sandbox-sidecar/sandbox-sidecar/display"
	"github.com/sandbox-sidecar/sandbox-sidecar/fsguard"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/protected"
)

// links are new symlinks through which a program outside would write elsewhere.
const links protected.Group = "symlinks"

const whyLinks = "programs outside write through them to where sessions may not"

// system are directories with programs and libraries. A link to a file there,
// such as a virtual environment's Python, is read and not written through.
var system = []string{
	"/usr", "/bin", "/sbin", "/lib", "/lib64", "/opt", "/nix/store", "/snap", "/System", "/Library", "/dev", "/proc",
}

// link adds a symlink if it is new and leads to where sessions may not write, or
// out of the directories that are reviewed.
func (w *search) link(path string) {
	info, err := fsguard.Lstat(path)
	if err != nil || info.Mode()&fs.ModeSymlink == 0 || !w.cameLink(path, info) && !w.isNew(info) {
		return
	}
	target, mode := w.leads(path)
	holds := func(dir string) bool { return policy.Contains(dir, target) }
	inside := slices.ContainsFunc(w.tops, holds) && !w.index.Protects(target)
	if inside || mode.IsRegular() && mode != 0 && slices.ContainsFunc(system, holds) {
		return
	}
	w.list.add(path, Created, reason{
		why: "it leads to " + display.Quote(target) + ": programs outside write through it", group: links,
	})
}

// cameLink is came for a symlink. One with a relative target leads elsewhere in
// another directory, so that counts, too.
func (w *search) cameLink(path string, info fs.FileInfo) bool {
	if w.memory == "" {
		return false
	}
	text, err := fsguard.ReadlinkPlain(path)
	if err == nil && !filepath.IsAbs(text) {
		text = filepath.Join(filepath.Dir(path), text)
	}
	return w.came(info, text, true)
}

// leads returns what a symlink leads to, and its mode. If nothing is there, it
// goes by the names.
func (w *search) leads(path string) (target string, mode fs.FileMode) {
	if real, err := fsguard.EvalSymlinks(path); err == nil {
		if info, err := fsguard.Lstat(real); err == nil {
			return real, info.Mode() | fs.ModePerm // so that it is not 0
		}
	}
	text, err := fsguard.ReadlinkPlain(path)
	if err != nil {
		return "?", 0
	}
	dir, err := fsguard.EvalSymlinks(filepath.Dir(path))
	if err != nil {
		dir = filepath.Dir(path)
	}
	if !filepath.IsAbs(text) {
		text = filepath.Join(dir, text)
	}
	if parent, err := fsguard.EvalSymlinks(filepath.Dir(text)); err == nil {
		return filepath.Join(parent, filepath.Base(text)), 0
	}
	return filepath.Clean(text), 0
}
