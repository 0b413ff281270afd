package sensitive

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/resolve"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/risks"
)

// Linked is a symlink in a directory of the table, below a home directory, to
// something that the table does not have: so managers of dotfiles make them.
type Linked struct {
	// Path is the symlink's. Its directory is without symlinks.
	Path string
	// Target is where it leads, whether that exists or not.
	Target resolve.Target
	// Acts says who acts on that, as in risks.Place.
	Acts string
	// Program: it is in a directory in which shells find programs.
	Program bool
	// Secret is what the file there holds, because the symlink's directory does, and
	// Shown says that sessions see it in a wider grant, as in risks.Place.
	Secret string
	Shown  bool
}

// Linked finds those symlinks, as far as FS.Links looks. It leaves out those that
// lead to directories of much that nobody acts on: a home directory, one that holds
// it, one directly in it, such as ~/Documents, and those near the root. It leaves
// out what programs keep while they run, too.
func (p *Paths) Linked(r *resolve.View) (list []Linked) {
	if p.base != nil {
		return p.base.Linked(r)
	}
	var dirs []string
	for i, known := range p.acting(r) {
		if !known.Store && known.Variable == "" && p.named[i].exists && p.inHome(known.Path) &&
			r.Entry(known.Path).Mode.IsDir() && !slices.Contains(dirs, known.Path) {
			dirs = append(dirs, known.Path)
		}
	}
	links, _ := r.FS.Links(dirs) // SECURITY.md says what is found of many
	for _, path := range links {
		target := r.Resolve(path)
		if _, found := within(p.acting(r), target.Path); found || target.Err != nil || p.leftOut(target) {
			continue
		}
		of, _ := within(p.acting(r), path)
		one := Linked{
			Path: path, Target: target, Acts: of.Acts, Program: risks.IsProgramDir(filepath.Base(filepath.Dir(path))),
		}
		const others = 0o077
		one.Secret, one.Shown = p.secretAt(path)
		// ssh takes no key that others may read.
		if !target.Exists || one.Secret == risks.SSHKeys && target.Mode&others != 0 {
			one.Secret = ""
		}
		list = append(list, one)
	}
	return list
}

// secretAt is what a place of secrets that a path is in holds; "" if there is none,
// or if the path's name is one of files without.
func (p *Paths) secretAt(path string) (holds string, shown bool) {
	for i := range p.All {
		if known := &p.All[i]; known.Mixed == "" && policy.Contains(known.Path, path) && !known.isPlain(path) {
			return known.Holds, !known.Hidden
		}
	}
	return "", false
}

// leftOut reports whether a target is one that Linked leaves out.
func (p *Paths) leftOut(target resolve.Target) bool {
	const near = 3 // names
	isDir := target.Exists && target.Mode.IsDir()
	running := func(dir string) bool { return policy.Contains(dir, target.Path) }
	return isDir && strings.Count(target.Path, "/") < near ||
		slices.ContainsFunc([]string{"/dev", "/proc", "/run"}, running) ||
		slices.ContainsFunc(p.homes, func(home string) bool {
			return policy.Contains(target.Path, home) || isDir && filepath.Dir(target.Path) == home
		})
}
