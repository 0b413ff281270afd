package darwin

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"syscall"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
)

// Files is what resolving paths asks of the file system.
type Files interface {
	// Real is a file as the kernel spells it. A symlink at the end of path is
	// the file itself; one before is an error that wraps ELOOP.
	Real(path string) (Real, error)
	// Follow is path without any symlink.
	Follow(path string) (string, error)
}

// Real is a file that exists.
type Real struct {
	Path string
	Dir  bool
}

// Scene is a plan whose paths are the kernel's own.
type Scene struct {
	Plan
	Grants []ResolvedGrant
	// Protected, Closed and Fixed are those of the plan, with the symlinks on
	// the way to them.
	Protected, Closed, Fixed []Name
	// Unkept are protected paths in directories that do not exist. To keep them
	// from being made, the directory would have to be refused too, and with
	// .git/config every "git init". What comes to be there is found by the
	// review at the session's end, as on Linux.
	Unkept []string
	// Pinned are the directories on the way to what is protected, and the roots
	// of grants for writing: they stay where they are, because a rule is about
	// a path, and a directory that has another name is another path.
	Pinned []Name
	// Sockets are those of the plan.
	Sockets []string
	// Terminal is the session's own terminal; empty where it has none.
	Terminal string
	// WorkDir is the directory that the session starts in.
	WorkDir string
}

// ResolvedGrant is a grant of a file that exists.
type ResolvedGrant struct {
	Real
	Access  policy.Access
	Private bool
}

// Name is a path, whether or not there is something.
type Name struct {
	// Path is as the kernel spells it as far as it exists.
	Path string
	// Exists is how far that is.
	Exists string
}

// Absent reports whether there is nothing yet. Most disks of macOS ignore case:
// whatever is put there may be spelt otherwise.
func (n Name) Absent() bool { return n.Exists != n.Path }

// Resolve finds out how the kernel spells the plan's paths. What cannot be
// granted is returned beside; what cannot be refused is an error, as is a
// required grant that cannot be granted.
func (p Plan) Resolve(files Files) (Scene, []platform.Missing, error) {
	scene := Scene{Plan: p}
	var missing []platform.Missing
	for _, grant := range p.Grants {
		real, err := realPath(files, string(grant.Path))
		if err != nil {
			if grant.Required {
				return Scene{}, nil, fmt.Errorf("grant %s: %w", grant.Path, err)
			}
			missing = append(missing, platform.Missing{Path: string(grant.Path), Reason: err.Error()})
			continue
		}
		scene.Grants = append(scene.Grants, ResolvedGrant{Real: real, Access: grant.Access, Private: grant.Private})
	}
	refused := func(list []Path) (out []Name, err error) {
		for _, path := range list {
			names, err := refuse(files, string(path))
			if err != nil {
				return nil, fmt.Errorf("protect %s: %w", path, err)
			}
			out = append(out, names...)
		}
		return out, nil
	}
	for _, protected := range p.Protected {
		names, err := refuse(files, string(protected))
		if err != nil {
			return Scene{}, nil, fmt.Errorf("protect %s: %w", protected, err)
		}
		// The last is the path itself, those before are symlinks that exist.
		if last := len(names) - 1; names[last].Absent() && names[last].Exists != path.Dir(names[last].Path) {
			scene.Unkept = append(scene.Unkept, string(protected))
			names = names[:last]
		}
		scene.Protected = append(scene.Protected, names...)
	}
	var err error
	if scene.Closed, err = refused(p.Closed); err != nil {
		return Scene{}, nil, err
	}
	if scene.Fixed, err = refused(p.Fixed); err != nil {
		return Scene{}, nil, err
	}
	for _, socket := range p.Sockets {
		real, err := realPath(files, string(socket))
		if err != nil {
			missing = append(missing, platform.Missing{Path: string(socket), Reason: err.Error()})
			continue
		}
		scene.Sockets = append(scene.Sockets, real.Path)
	}
	scene.pin()
	return scene, missing, nil
}

// realPath refuses what a rule could not stand for. Nothing is repaired: a path
// that needs it did not come from a policy.
func realPath(files Files, name string) (Real, error) {
	if !path.IsAbs(name) || path.Clean(name) != name || strings.Contains(name, "\x00") {
		return Real{}, fmt.Errorf("%q is no clean absolute path", name)
	}
	return files.Real(name)
}

// maxLinks bounds how many symlinks are followed on the way to what is refused,
// as the kernel does (MAXSYMLINKS).
const maxLinks = 32

// refuse is the path as the kernel spells it, whether or not it exists, behind
// every symlink on the way, which would otherwise be pointed elsewhere.
func refuse(files Files, name string) (list []Name, err error) {
	for range maxLinks {
		real, err := realPath(files, name)
		switch {
		case err == nil:
			return append(list, Name{real.Path, real.Path}), nil
		case isAbsent(err):
			spelt, err := spell(files, name)
			if err == nil {
				return append(list, spelt), nil
			}
			if !errors.Is(err, syscall.ELOOP) {
				return nil, err
			}
		case !errors.Is(err, syscall.ELOOP):
			return nil, err
		}
		link, rest, err := firstLink(files, name)
		if err != nil {
			return nil, err
		}
		target, err := files.Follow(link)
		if err != nil {
			return nil, err
		}
		list = append(list, Name{link, link})
		name = path.Join(target, rest)
	}
	return nil, syscall.ELOOP
}

// isAbsent reports whether an error says that a path, or the end of it, does
// not exist.
func isAbsent(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
}

// spell spells a path that does not exist: the directory that does as the
// kernel spells it, and the rest as it is.
func spell(files Files, name string) (Name, error) {
	rest := ""
	for dir := name; ; {
		dir, rest = path.Dir(dir), path.Join(path.Base(dir), rest)
		real, err := realPath(files, dir)
		if err == nil {
			return Name{Path: path.Join(real.Path, rest), Exists: real.Path}, nil
		}
		if !isAbsent(err) || dir == "/" {
			return Name{}, err
		}
	}
}

// firstLink is the first symlink on the way to a path, as the kernel spells it,
// and what follows it.
func firstLink(files Files, name string) (link, rest string, err error) {
	names := strings.Split(name, "/")
	for i := 2; i <= len(names); i++ {
		at, rest := strings.Join(names[:i], "/"), strings.Join(names[i:], "/")
		if _, err := realPath(files, path.Join(at, "x")); errors.Is(err, syscall.ELOOP) {
			real, err := realPath(files, at)
			return real.Path, rest, err
		}
	}
	return "", "", syscall.ELOOP
}

// pin finds what must keep its name. Only what a grant lets the session rename
// is listed.
func (s *Scene) pin() {
	pinned := map[string]Name{}
	for _, grant := range s.Grants {
		// Landlock, too, lets nobody remove the root of a grant: that is the
		// business of the directory above it.
		if grant.Access.Has(policy.Write) && grant.Path != "/" && !s.writable(path.Dir(grant.Path)) {
			pinned[grant.Path] = Name{grant.Path, grant.Path}
		}
	}
	for _, refused := range slices.Concat(s.Protected, s.Fixed, s.Closed) {
		for dir := path.Dir(refused.Path); dir != "/" && s.writable(dir); dir = path.Dir(dir) {
			exists := dir
			if len(dir) > len(refused.Exists) {
				exists = refused.Exists
			}
			pinned[dir] = Name{Path: dir, Exists: exists}
		}
	}
	for _, name := range pinned {
		s.Pinned = append(s.Pinned, name)
	}
	slices.SortFunc(s.Pinned, func(a, b Name) int { return strings.Compare(a.Path, b.Path) })
}

// writable reports whether a grant lets the session write a path.
func (s *Scene) writable(name string) bool {
	return slices.ContainsFunc(s.Grants, func(g ResolvedGrant) bool {
		return g.Access.Has(policy.Write) && policy.Contains(g.Path, name)
	})
}
