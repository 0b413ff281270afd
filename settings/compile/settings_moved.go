package compile

import (
	"fmt"
	"path/filepath"
	"slices"

	"github.com/sandbox-sidecar/sandbox-sidecar/display"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/document"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/resolve"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/toolchain"
)

// settingsNames are names of files of settings, with the directory if the name
// alone is that of other files, too.
var settingsNames = []string{
	".npmrc", "npmrc", ".yarnrc", ".yarnrc.yml", "pip.conf", "uv.toml", ".condarc", "condarc", ".bunfig.toml", ".gemrc",
	"gemrc", ".curlrc", "curlrc", ".wgetrc", "wgetrc", ".hgrc", "hgrc", "gradle.properties", "nix.conf", "pnpm/rc",
	"nix/access-tokens.conf", "yarn/config", "pypoetry/config.toml", "pdm/config.toml", "go/env",
	"composer/config.json", "helm/repositories.yaml", ".m2/settings.xml", "maven/settings.xml",
}

// namesSettings reports whether a path has the name of a file of settings.
func namesSettings(path string) bool {
	dir, name := filepath.Split(path)
	in := filepath.Base(dir)
	return slices.Contains(settingsNames, name) || slices.Contains(settingsNames, filepath.Join(in, name)) ||
		in == "condarc.d" // any name in it
}

// isSettings reports whether a file that a variable names is one of settings, by
// its name. A line in a project's .env can set any variable. So it is none if a
// session could have made the file, or a symlink to it, if a project has it, or if
// it lies where keys are.
func (v fsView) isSettings(named string, target resolve.Target) bool {
	if !namesSettings(named) {
		return false
	}
	for _, other := range v.sensitive.All {
		if other.Mixed == "" && policy.Contains(other.Path, target.Path) {
			return false // it is in a place of keys
		}
	}
	made := func(path string) bool {
		return v.inProject(path, policy.Read) || sidecarsOwn(path) || v.makeable(path, "/", "/")
	}
	return !made(target.Path) &&
		!slices.ContainsFunc(target.Links, func(link resolve.Link) bool { return made(link.Path) })
}

// diagnoseMoved finds files of settings that variables name and of which sessions
// read nothing: their programs go elsewhere in silence. It is a warning if the set
// of such a program is chosen, at that set. Any variable may name any file, so what
// is said about one without a usual name does not depend on its content, and opening
// it is not suggested.
func (e *evaluation) diagnoseMoved(r *reporter) {
	if e.restricted == (document.Kinds{}) {
		return
	}
	told := map[string]bool{}
	for i := range e.sensitive.All {
		if p := &e.sensitive.All[i]; !p.Moved {
			told[p.Path] = true // other parts of the policy decide
		}
	}
	index := policy.NewIndex(&e.policy)
	for i := range e.sensitive.All {
		p := &e.sensitive.All[i]
		if p.Mixed == "" || !p.Moved || !p.Exists || told[p.Path] {
			continue
		}
		target := e.Resolve(p.Named)
		if target.Err != nil || !target.Mode.IsRegular() {
			continue
		}
		if left := e.moving.left; left != "" && policy.Contains(left, p.Path) {
			continue // the evaluation with the project says what holds for its sessions
		}
		told[p.Path] = true
		reads := index.At(p.Path).Has(policy.Read) ||
			slices.ContainsFunc(e.policy.Copies, func(c policy.Copy) bool { return c.Path == p.Path })
		passes := e.policy.Environment.Allows(p.Variable)
		why, step := "sessions read it only at its usual place", "keep it there"
		switch {
		case passes && reads:
			continue
		case !passes:
			why, step = "sessions do not get the variable", e.passing(p.Variable)
		case e.isSettings(p.Named, target):
			if _, whole := e.partOf(target, p.Mixed, p.Format); whole {
				why, step = "sessions may not read the file", `add it to "additional_read_only_paths"`
			} else if policy.Contains(e.host.Home, p.Named) {
				continue // copiesOf has said so
			}
		}
		file, at, severity, key := target.Path, document.Position{Line: 1, Column: 1}, document.SeverityInfo, ""
		if c, is := e.chosenFor(p.Variable); is {
			file, at, severity, key = c.origin.File, c.at, document.SeverityWarning, toolchainsKey
		}
		r.add(file, at, severity, key, "%s names %s: %s, so %s; %s", p.Variable, display.Quote(target.Path), why,
			p.Mixed, step)
	}
}

// chosenFor is the chosen set of the program that reads a variable.
func (e *evaluation) chosenFor(name string) (c chosen, is bool) {
	i := slices.IndexFunc(e.toolchains, func(c chosen) bool {
		// The variable may hold passwords, so the set does not bring it.
		return c.Name == "java" && name == "MAVEN_ARGS" || brings(c.Toolchain, name)
	})
	if i < 0 {
		return chosen{}, false
	}
	return e.toolchains[i], true
}

// brings reports whether sessions get a variable by a set.
func brings(set toolchain.Toolchain, name string) bool {
	return slices.ContainsFunc(set.Variables, func(v toolchain.Variable) bool { return v.Name == name })
}

// passing says what lets sessions get a variable: a set that has it, or the list.
func (e *evaluation) passing(name string) string {
	for _, set := range toolchain.All {
		if brings(set, name) && !hasToolchain(e.toolchains, set.Name) {
			return fmt.Sprintf("add %q to %q", set.Name, toolchainsKey)
		}
	}
	return e.addingVariables().pass(name, e.bounds)
}
