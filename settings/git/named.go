package git

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sandbox-sidecar/sandbox-sidecar/fsguard"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/gitconfig"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/resolve"
)

// configuration protects a configuration file, and what it makes git run or
// read: hooks elsewhere, and further configuration. A file that does not exist
// is protected, too: git would read it.
func (g *finder) configuration(file string) {
	if slices.Contains(g.read, file) {
		return
	}
	if len(g.read) >= g.most().configs {
		g.found.Crowded = true
		return
	}
	g.read = append(g.read, file)
	target := g.named(file)
	if !target.Exists || !target.Mode.IsRegular() {
		return
	}
	for _, how := range []gitconfig.Blanks{gitconfig.BlanksReplaced, gitconfig.BlanksKept} {
		content := g.raw(file)
		entries, _ := gitconfig.Parse(content, how)
		for _, e := range entries {
			g.variable(file, e)
		}
		if !strings.ContainsAny(content, "\t\r") {
			break // both are the same
		}
	}
}

// variable protects what a variable of a file names. Conditions of includes are
// taken as met: a branch or a directory can change.
func (g *finder) variable(file string, e gitconfig.Entry) {
	if !e.Valued {
		return
	}
	section, name := e.Split()
	g.command(file, e)
	switch {
	case e.Key == "core.hookspath":
		path, ok := g.expand("", e.Value)
		switch relative := strings.TrimPrefix(path, "/"); {
		case !ok:
		case !filepath.IsAbs(strings.TrimPrefix(e.Value, ":(optional)")) && !strings.HasPrefix(e.Value, "~"):
			if !slices.Contains(g.hooks, relative) && len(g.hooks) < g.most().hooks {
				g.hooks = append(g.hooks, relative)
			}
		default:
			g.named(path)
		}
	case e.Key == "init.templatedir": // git copies its hooks to each repository that it makes
		if path, ok := g.expand("", e.Value); ok && (filepath.IsAbs(e.Value) || strings.HasPrefix(e.Value, "~")) {
			g.named(path)
		}
	case e.Key == "include.path", section == "includeif" && name == "path":
		if path, ok := g.expand(filepath.Dir(file), e.Value); ok {
			g.configuration(path)
		}
	}
}

// answered does the same for what git says itself.
func (g *finder) answered(answer Answer) {
	for _, one := range answer {
		g.configuration(one.file)
		g.variable(one.file, one.entry)
	}
}

// named protects what a path leads to, and the symlinks on the way.
func (g *finder) named(path string) resolve.Target {
	target := g.view.Resolve(path)
	if errors.Is(target.Err, fsguard.ErrNoAnswer) {
		g.unanswered(path, target.Err)
	}
	for _, link := range target.Links {
		g.place(link.Path)
	}
	g.place(target.Path)
	return target
}

// place protects a path, or records it if it lies elsewhere.
func (g *finder) place(path string) {
	switch {
	case policy.Contains(path, g.project):
		// All of the project cannot be protected.
	case g.ours(path):
		g.protect(path)
	case slices.Contains(g.found.Elsewhere, path):
	case len(g.found.Elsewhere) < g.most().protected:
		g.found.Elsewhere = append(g.found.Elsewhere, path)
	default:
		g.found.Crowded = true
	}
}

// ours reports whether a session may write a path because it is in the project
// or in the repository.
func (g *finder) ours(path string) bool {
	if policy.Contains(g.project, path) {
		return true
	}
	return slices.ContainsFunc(g.found.Outside, func(dir string) bool { return policy.Contains(dir, path) })
}

// expand makes a path of git's configuration absolute, as interpolate_path() in
// git's path.c does. A path below git's own prefix is not writable.
func (g *finder) expand(dir, path string) (string, bool) {
	path = strings.TrimPrefix(path, ":(optional)")
	if path == "" || strings.HasPrefix(path, "%(") {
		return "", false
	}
	if rest, ok := strings.CutPrefix(path, "~"); ok {
		name, rest, _ := strings.Cut(rest, "/")
		home := g.host.Home
		if name != "" {
			var err error
			if home, err = g.view.FS.HomeOf(name); err != nil {
				return "", false
			}
		}
		return home + "/" + rest, home != ""
	}
	if !filepath.IsAbs(path) {
		path = dir + "/" + path
	}
	return path, true
}
