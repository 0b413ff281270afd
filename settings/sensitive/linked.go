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
// something that the table does not have: so managers of dotfiles make them. It is
// about what programs act on, or about a secret.
type Linked struct {
	// Path is the symlink's. Its directory is without symlinks.
	Path string
	// Target is where it leads, whether that exists or not.
	Target resolve.Target
	// Acts says who acts on that, as in risks.Place; "" if nobody does.
	Acts string
	// Program: it is in a directory in which shells find programs.
	Program bool
	// Secret is what the file at Target holds, because the symlink's directory does;
	// "" if it is none. Shown: sessions see it in a wider grant, as in risks.Place.
	Secret string
	Shown  bool
}

// Linked finds those symlinks, as far as FS.Links looks. Left out are those that
// lead to a home directory, to one that holds it, to one for documents, such as
// ~/Documents, and to directories near the root: no program acts on most of what is
// there. So are those to files that programs make while they run.
func (p *Paths) Linked(r *resolve.View) (list []Linked) {
	if p.base != nil {
		return p.base.Linked(r)
	}
	links, _ := r.FS.Links(p.linkDirs(r)) // SECURITY.md says what is found of many
	for _, path := range links {
		target := r.Resolve(path)
		if _, found := within(p.acting(r), target.Path); found || target.Err != nil || p.leftOut(target) {
			continue
		}
		of, _ := within(p.acting(r), path)
		one := Linked{
			Path: path, Target: target, Acts: of.Acts, Program: risks.IsProgramDir(filepath.Base(filepath.Dir(path))),
		}
		if one.Acts != "" {
			list = append(list, one)
		}
		for _, secret := range p.secretsAt(r, path, target) {
			secret.Path, secret.Acts = path, of.Acts
			list = append(list, secret)
		}
	}
	return list
}

// linkDirs are the directories in which people put symlinks to files of theirs:
// those of the table that exist, also where a variable says that they are.
func (p *Paths) linkDirs(r *resolve.View) (dirs []string) {
	add := func(path string) {
		if p.inHome(path) && r.Entry(path).Mode.IsDir() && !slices.Contains(dirs, path) {
			dirs = append(dirs, path)
		}
	}
	for i, known := range p.acting(r) {
		if !known.Store && !risks.Searches(known.Variable) && p.named[i].exists {
			add(known.Path)
		}
	}
	for i := range p.All {
		if known := &p.All[i]; known.Exists && known.Hidden && !known.store && known.Mixed == "" {
			add(known.Path)
		}
	}
	return dirs
}

// others are the permissions of all but the owner.
const others = 0o077

// secretsAt are the secrets that a symlink in a place of secrets leads to: a file
// that only its owner may read, or that has a usual name of one there or here, and
// such files in a directory. A program is none, and neither is what the table says
// to be harmless.
func (p *Paths) secretsAt(r *resolve.View, path string, target resolve.Target) (list []Linked) {
	holds, shown := "", false
	for i := range p.All {
		if known := &p.All[i]; known.Mixed == "" && policy.Contains(known.Path, path) && !known.isPlain(path) {
			holds, shown = known.Holds, !known.Hidden
			break
		}
	}
	harmless := func(known risks.Place) bool { return known.Harmless && policy.Contains(known.Path, path) }
	if holds == "" || !target.Exists || slices.ContainsFunc(p.table, harmless) {
		return nil
	}
	const programs, most = 0o111, 256
	add := func(path string, at resolve.Target) {
		named := risks.IsSecretName(path) || risks.IsSecretName(at.Path)
		if mode := at.Mode; mode.IsRegular() && mode&programs == 0 && (mode&others == 0 || named) {
			list = append(list, Linked{Target: at, Secret: holds, Shown: shown})
		}
	}
	if add(path, target); target.Mode.IsDir() {
		names, err := r.FS.ReadDir(target.Path)
		if err != nil {
			return list
		}
		for _, name := range names[:min(len(names), most)] {
			add(filepath.Join(path, name), r.Resolve(filepath.Join(target.Path, name)))
		}
	}
	return list
}

// documents are directories in a home directory that hold all kinds of files
// (user-dirs.dirs(5)), by their usual names.
var documents = []string{
	"Desktop", "Documents", "Downloads", "Music", "Pictures", "Public", "Templates", "Videos", "Movies", "Library",
}

// leftOut reports whether a target is one that Linked leaves out.
func (p *Paths) leftOut(target resolve.Target) bool {
	const near = 3 // names
	isDir := target.Exists && target.Mode.IsDir()
	running := func(dir string) bool { return policy.Contains(dir, target.Path) }
	return slices.ContainsFunc([]string{"/dev", "/proc", "/run"}, running) ||
		isDir && strings.Count(target.Path, "/") < near && !p.inHome(target.Path) ||
		slices.ContainsFunc(p.homes, func(home string) bool {
			dir, name := filepath.Split(target.Path)
			return policy.Contains(target.Path, home) || isDir && dir == home+"/" && slices.Contains(documents, name)
		})
}
