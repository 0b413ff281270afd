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
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/handshake"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
)

// Files is what resolving paths needs of the file system.
type Files interface {
	// Real returns a file as the kernel spells it. If path ends in a symlink,
	// it is the symlink itself. If a symlink is on the way, the error wraps
	// ELOOP.
	Real(path string) (Real, error)
	// Follow returns path without any symlink.
	Follow(path string) (string, error)
}

// Real is a file that exists.
type Real struct {
	Path string
	Dir  bool
}

// Scene is a plan whose paths are spelled as the kernel spells them.
type Scene struct {
	Plan
	Grants []ResolvedGrant
	// Protected, Closed and Fixed are those of the plan, with the symlinks on
	// the way to them.
	Protected, Closed, Fixed []Name
	// Unkept are protected paths in missing directories. To prevent their
	// creation, the directory would have to be denied too, and with .git/config
	// every "git init". The review at the session's end finds what was created
	// there, as on Linux.
	Unkept []string
	// Pinned are the directories above protected paths, and the roots of grants
	// for writing. They cannot be renamed, because a rule is about a path.
	Pinned []Name
	// Sockets are those of the plan.
	Sockets []string
	// Terminal is the session's own terminal; empty if it has none.
	Terminal string
	// WorkDir is the session's working directory.
	WorkDir string
}

// ResolvedGrant is a grant of an existing file.
type ResolvedGrant struct {
	Real
	Access  policy.Access
	Private bool
}

// Name is a path that need not exist.
type Name struct {
	// Path is the path. Its existing part is spelled as the kernel spells it.
	Path string
	// Exists is the existing part.
	Exists string
}

// Absent reports whether the path does not exist. Most disks of macOS ignore
// case, so it may be created with another spelling.
func (n Name) Absent() bool { return n.Exists != n.Path }

// Resolve finds out how the kernel spells the plan's paths. It returns the
// grants that have no effect. It fails if a path cannot be denied, or a
// required grant cannot be granted.
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
	refused := func(list []handshake.RawString) (out []Name, err error) {
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
		// The last name is the path itself; those before are symlinks that
		// exist.
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

// realPath rejects a path that no rule can stand for. Such a path did not come
// from a policy, so it is not repaired.
func realPath(files Files, name string) (Real, error) {
	if !path.IsAbs(name) || path.Clean(name) != name || strings.Contains(name, "\x00") {
		return Real{}, fmt.Errorf("%q is not a clean absolute path", name)
	}
	return files.Real(name)
}

// maxLinks bounds the symlinks on the way, as the kernel does (MAXSYMLINKS).
const maxLinks = 32

// refuse returns a path as the kernel spells it, even if it does not exist,
// after every symlink on the way: a symlink could otherwise be changed to lead
// elsewhere.
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

// isAbsent reports whether an error says that a path or a part of it does not
// exist.
func isAbsent(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
}

// spell returns a missing path: its existing directory as the kernel spells it,
// and the rest unchanged.
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

// firstLink returns the first symlink on the way to a path, as the kernel
// spells it, and the rest of the path.
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

// pin fills Pinned with the directories that a grant would let the session
// rename.
func (s *Scene) pin() {
	pinned := map[string]Name{}
	for _, grant := range s.Grants {
		// As under Landlock, removing the root of a grant needs write access to
		// the directory above it.
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
