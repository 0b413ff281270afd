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

// protectedOf returns the protected paths of one layer; nil where the layer
// does not set them. Relative entries are relative to the project in every
// layer. Symlinks are not followed: it is the name inside the project that has
// to stay as it is.
func (e *evaluation) protectedOf(s *settings) []policy.Protected {
	from, ok := s.from[protectedKey]
	if !ok || e.policy.Project == "" {
		return nil
	}
	list := []policy.Protected{}
	for i, text := range s.values.ProtectedPaths {
		at := from.element(i)
		path, err := e.host.Expand(text, e.policy.Project)
		if err != nil {
			e.report(from.file, at, document.SeverityError, protectedKey, "%s: %v; the entry does not count", display.Quote(text), err)
			if e.unclear == nil {
				e.unclear = &document.FileDiagnostic{File: from.file, Diagnostic: document.Diagnostic{
					Line: at.Line, Column: at.Column, Severity: document.SeverityError, Key: protectedKey, Message: fmt.Sprintf("%s: %v",
						display.Quote(text), err),
				}}
			}
			continue
		}
		path, inside := e.insideProject(filepath.Clean(path))
		if !inside {
			e.report(from.file, at, document.SeverityError, protectedKey,
				"%s lies outside of the project, where nothing is writable without a grant of its own; the entry does not count",
				display.Quote(text))
			continue
		}
		list = append(list, policy.Protected{Path: path, Origin: from.policy(protectedKey, at)})
	}
	return list
}

// insideProject expresses a clean path below the project's real path. The
// project may have been named through a symlink.
func (e *evaluation) insideProject(path string) (string, bool) {
	if policy.Contains(e.policy.Project, path) {
		return path, true
	}
	if policy.Contains(e.projectDir, path) {
		return filepath.Join(e.policy.Project, path[len(e.projectDir):]), true
	}
	return "", false
}

// builtInProtected is what a null protected_paths stands for in this project.
func (e *evaluation) builtInProtected() []policy.Protected {
	if e.policy.Project == "" {
		return nil
	}
	var list []policy.Protected
	for _, name := range protectedByDefault {
		path := filepath.Join(e.policy.Project, name)
		if e.git.Pointer && policy.Contains(filepath.Join(e.policy.Project, ".git"), path) {
			continue // .git is a file, which is protected itself
		}
		list = append(list, builtIn(path))
	}
	for _, path := range e.git.Inside {
		list = append(list, builtIn(path))
	}
	return list
}

func builtIn(path string) policy.Protected {
	return policy.Protected{Path: path, Origin: policy.Origin{File: policy.OriginBuiltIn, Key: protectedKey}}
}

// guardKey names the origin of the protection of settings files.
const guardKey = "settings files"

// guard protects what no session may change of the files that decide about
// sessions, where the rules would let it. A grant that holds them is the user's
// own, so it stays; the files in it do not become writable.
func (e *evaluation) guard() []policy.Protected {
	var list []policy.Protected
	for _, path := range e.guarded {
		if e.rules.at(path).Has(policy.Write) {
			list = append(list, policy.Protected{Path: path, Origin: policy.Origin{File: policy.OriginBuiltIn, Key: guardKey},
				Decides: true})
		}
	}
	return list
}

func sortProtected(list []policy.Protected) []policy.Protected {
	slices.SortStableFunc(list, func(a, b policy.Protected) int { return cmp.Compare(a.Path, b.Path) })
	return slices.CompactFunc(list, func(a, b policy.Protected) bool { return a.Path == b.Path })
}
