package settings

import (
	"cmp"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
)

const protectedKey = "protected_paths"

// protectedOf returns the protected paths of one layer; nil where the layer does not set them. Relative entries are relative to the
// project in every layer. Symlinks are not followed: it is the name inside the project that has to stay as it is.
func (e *evaluation) protectedOf(s *settings) []policy.Protected {
	from, ok := s.from[protectedKey]
	if !ok || e.policy.Project == "" {
		return nil
	}
	list := []policy.Protected{}
	for i, text := range s.values.ProtectedPaths {
		at := from.element(i)
		path, err := e.host.expand(text, e.policy.Project)
		if err != nil {
			e.report(from.file, at, SeverityError, protectedKey, "%s: %v; the entry does not count", quote(text), err)
			continue
		}
		path, inside := e.insideProject(filepath.Clean(path))
		if !inside {
			e.report(from.file, at, SeverityError, protectedKey,
				"%s lies outside of the project, where nothing is writable without a grant of its own; the entry does not count", quote(text))
			continue
		}
		list = append(list, policy.Protected{Path: path, Origin: from.policy(protectedKey, at)})
	}
	return list
}

// insideProject expresses a clean path below the project's real path. The project may have been named through a symlink.
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
	for _, name := range slices.Concat(protectedByDefault, gitProtected(e.resolver.files, e.policy.Project)) {
		list = append(list, policy.Protected{
			Path:   filepath.Join(e.policy.Project, name),
			Origin: policy.Origin{File: policy.OriginBuiltIn, Key: protectedKey},
		})
	}
	return list
}

func sortProtected(list []policy.Protected) []policy.Protected {
	slices.SortStableFunc(list, func(a, b policy.Protected) int { return cmp.Compare(a.Path, b.Path) })
	return slices.CompactFunc(list, func(a, b policy.Protected) bool { return a.Path == b.Path })
}

// Bounds of the search for submodules: a repository made to be slow to look at must not slow every start of a session.
const (
	maxModuleDepth = 6
	maxModules     = 256
	maxModuleDirs  = 1024
)

// gitProtected lists, relative to the project, what makes git run commands besides the fixed names: pointer files, which say where
// the configuration is, and the configuration and hooks of submodules. Only what exists is listed.
func gitProtected(f files, project string) []string {
	var list []string
	pointer := func(dir string) {
		name := filepath.Join(dir, ".git")
		if mode, err := f.lstat(filepath.Join(project, name)); err == nil && mode.IsRegular() {
			list = append(list, name)
		}
	}
	pointer("")
	if data, err := f.readFile(filepath.Join(project, ".gitmodules")); err == nil {
		for line := range strings.Lines(string(data)) {
			key, value, ok := strings.Cut(strings.TrimSpace(line), "=")
			dir := strings.Trim(strings.TrimSpace(value), `"`)
			if ok && strings.TrimSpace(key) == "path" && filepath.IsLocal(dir) && len(list) < maxModules {
				pointer(dir)
			}
		}
	}
	visited := 0
	var walk func(dir string, depth int)
	walk = func(dir string, depth int) {
		visited++
		if depth == 0 || visited > maxModuleDirs || len(list) >= maxModules {
			return
		}
		names, err := f.readDir(filepath.Join(project, dir))
		if err != nil {
			return
		}
		if slices.Contains(names, "HEAD") {
			list = append(list, filepath.Join(dir, "config"), filepath.Join(dir, "hooks"))
			walk(filepath.Join(dir, "modules"), depth-1)
			return
		}
		for _, name := range names {
			if mode, err := f.lstat(filepath.Join(project, dir, name)); err == nil && mode.IsDir() {
				walk(filepath.Join(dir, name), depth-1)
			}
		}
	}
	if mode, err := f.lstat(filepath.Join(project, ".git", "modules")); err == nil && mode.IsDir() {
		walk(filepath.Join(".git", "modules"), maxModuleDepth)
	}
	return list
}
