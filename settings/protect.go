package settings

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/sandbox-sidecar/sandbox-sidecar/display"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/document"
)

const protectedKey = "protected_paths"

// protectedOf returns the protected paths of one layer; nil if the layer does not
// set them. Relative entries are relative to the project in every layer. Symlinks
// are not followed: the name inside the project has to stay as it is. unclear is
// the first entry that could not be understood.
func protectedOf(
	view fsView, p project, s *settings, r *reporter,
) (list []policy.Protected, unclear *document.FileDiagnostic) {
	from, ok := s.from[protectedKey]
	if !ok || p.path == "" {
		return nil, nil
	}
	list = []policy.Protected{}
	for i, text := range s.values.ProtectedPaths {
		at := from.element(i)
		path, err := view.host.Expand(text, p.path)
		if err != nil {
			r.add(from.file, at, document.SeverityError, protectedKey, "%s: %v; the entry does not count",
				display.Quote(text), err)
			if unclear == nil {
				unclear = &document.FileDiagnostic{File: from.file, Diagnostic: document.Diagnostic{
					Line: at.Line, Column: at.Column, Severity: document.SeverityError, Key: protectedKey,
					Message: fmt.Sprintf("%s: %v", display.Quote(text), err),
				}}
			}
			continue
		}
		path, inside := p.inside(filepath.Clean(path))
		if !inside {
			r.add(from.file, at, document.SeverityError, protectedKey,
				"%s lies outside of the project, where nothing is writable by default; the entry does not count",
				display.Quote(text))
			continue
		}
		list = append(list, policy.Protected{Path: path, Origin: from.policy(protectedKey, at)})
	}
	return list, unclear
}

// inside expresses a clean path below the project's real path. The project may
// have been named through a symlink.
func (p project) inside(path string) (string, bool) {
	if policy.Contains(p.path, path) {
		return path, true
	}
	if policy.Contains(p.dir, path) {
		return filepath.Join(p.path, path[len(p.dir):]), true
	}
	return "", false
}

// builtInProtected is what a null protected_paths means in this project.
func builtInProtected(p project) []policy.Protected {
	if p.path == "" {
		return nil
	}
	var list []policy.Protected
	for _, name := range protectedByDefault {
		path := filepath.Join(p.path, name)
		if p.git.Pointer && policy.Contains(filepath.Join(p.path, ".git"), path) {
			continue // .git is a file, which is protected itself
		}
		list = append(list, builtIn(path))
	}
	for _, path := range p.git.Inside {
		list = append(list, builtIn(path))
	}
	return list
}

func builtIn(path string) policy.Protected {
	return policy.Protected{Path: path, Origin: policy.Origin{File: policy.OriginBuiltIn, Key: protectedKey}}
}

// guardKey names the origin of the protection of settings files.
const guardKey = "settings files"

// guard protects the files that decide about sessions if the grants would let a
// session change them. A grant that contains them is the user's own, so it stays;
// these files do not become writable.
func guard(view fsView, granted cover) []policy.Protected {
	var list []policy.Protected
	for _, path := range view.guarded {
		if granted.at(path).Has(policy.Write) {
			list = append(list, policy.Protected{
				Path: path, Origin: policy.Origin{File: policy.OriginBuiltIn, Key: guardKey},
				Decides: true,
			})
		}
	}
	return list
}

// guardGit protects the user's configuration of git, and hooks, in places that
// the grants open. A grant of exactly such a file is meant, so it stays.
func guardGit(l layers, p project, granted grantSet) []policy.Protected {
	if _, own := l.user.from[protectedKey]; own {
		return nil
	}
	var list []policy.Protected
	for _, path := range p.git.Elsewhere {
		meant := slices.ContainsFunc(granted.rules, func(r policy.Rule) bool {
			return r.Path == path && r.Access.Has(policy.Write)
		})
		if !meant && granted.cover.at(path).Has(policy.Write) {
			list = append(list, builtIn(path))
		}
	}
	return list
}

func sortProtected(list []policy.Protected) []policy.Protected {
	slices.SortStableFunc(list, func(a, b policy.Protected) int { return cmp.Compare(a.Path, b.Path) })
	return slices.CompactFunc(list, func(a, b policy.Protected) bool { return a.Path == b.Path })
}
