package settings

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sandbox-sidecar/sandbox-sidecar/display"
	"github.com/sandbox-sidecar/sandbox-sidecar/fsguard"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/document"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/toolchain"
)

const toolchainsKey = "toolchains"

// chosen is a toolchain that a layer names, with the place of the name.
type chosen struct {
	toolchain.Toolchain
	origin policy.Origin
	at     document.Position
}

// hasToolchain reports whether a toolchain is among those chosen.
func hasToolchain(list []chosen, name string) bool {
	return slices.ContainsFunc(list, func(c chosen) bool { return c.Name == name })
}

// toolchainsOf returns the toolchains that a layer names, each once. It adds a
// diagnostic for an unknown name.
func toolchainsOf(s *settings, r *reporter) []chosen {
	from, ok := s.from[toolchainsKey]
	if !ok {
		return nil
	}
	var list []chosen
	for i, name := range s.values.Toolchains {
		t, known := toolchain.Find(name)
		if !known {
			r.add(from.file, from.element(i), document.SeverityError, toolchainsKey, "%s: no such toolchain, %s",
				display.Quote(name), knownToolchains(name))
			continue
		}
		if !hasToolchain(list, name) {
			at := from.element(i)
			origin := from.policy(toolchainsKey, at)
			origin.Entry = name
			list = append(list, chosen{Toolchain: t, origin: origin, at: at})
		}
	}
	return list
}

// knownToolchains is a hint for a name that is unknown.
func knownToolchains(name string) string {
	names := toolchain.Names()
	if near := document.Nearest(name, names); near != "" {
		return fmt.Sprintf("did you mean %q?", near)
	}
	return "known are " + strings.Join(names, ", ")
}

// chooseToolchains decides which toolchains count: an untrusted project can only
// drop some.
func chooseToolchains(l layers, tightened *settings, r *reporter) []chosen {
	list := toolchainsOf(&l.user, r)
	if !l.projectSets(toolchainsKey) {
		return list
	}
	asked := toolchainsOf(l.project, r)
	list = slices.DeleteFunc(list, func(c chosen) bool { return !hasToolchain(asked, c.Name) })
	names := []string{}
	for _, c := range list {
		names = append(names, c.Name)
	}
	tightened.values.Toolchains = names
	tightened.decide(l, toolchainsKey)
	return list
}

// toolchainGrants resolves what the toolchains grant. Paths that do not exist
// are left out without a diagnostic: nobody has every tool. create lists the
// directories to be made before a session starts.
func toolchainGrants(view fsView, toolchains []chosen, r *reporter) (list []grant, create []string) {
	for _, c := range toolchains {
		for _, p := range c.Places {
			if p.Platform != "" && p.Platform != view.host.Platform {
				continue
			}
			for _, dir := range view.placeDirs(c, p, r) {
				target := view.Resolve(filepath.Join(dir, p.Below))
				if target.Err != nil || !target.Exists && !p.Create {
					continue
				}
				origin := c.origin
				origin.Reason = p.Why
				if !target.Exists {
					create = append(create, target.Path)
				}
				list = append(list, grant{
					path: target.Path, links: target.Links, cache: p.Cache(), hidden: p.Hidden,
					request: request{text: c.Name, access: p.Access, origin: origin, at: c.at},
				})
			}
		}
	}
	return list, create
}

// placeDirs are the directories that a place is in: those of its variable, or
// the usual one if the variable is not set.
func (v fsView) placeDirs(c chosen, p toolchain.Place, r *reporter) []string {
	if p.Variable == "" || v.host.Env[p.Variable] == "" {
		if dir, err := v.host.Expand(p.At, ""); err == nil {
			return []string{dir}
		}
		return nil
	}
	var dirs []string
	for _, dir := range filepath.SplitList(v.host.Env[p.Variable]) {
		if !filepath.IsAbs(dir) {
			continue
		}
		// Programs set variables, and programs make mistakes: nobody asked for
		// the whole home directory.
		real := v.Resolve(filepath.Join(dir, p.Below)).Path
		why := v.sensitive.Holds(real)
		if why != "" {
			why = "that is " + why
		} else if p.Access.Has(policy.Write) {
			why = v.undoes(real)
		}
		if why != "" {
			r.add(c.origin.File, c.at, document.SeverityWarning, toolchainsKey,
				"%s: the variable %s is %s: not granted, because %s", display.Quote(c.Name), p.Variable, display.Quote(dir), why)
			continue
		}
		dirs = append(dirs, dir)
	}
	return dirs
}

// toolchainVariables are the variables that sessions get because of the
// toolchains.
func toolchainVariables(toolchains []chosen) []Variable {
	var list []Variable
	for _, c := range toolchains {
		for _, v := range c.Variables {
			origin := c.origin
			origin.Reason = v.Why
			list = append(list, Variable{Pattern: v.Name, Origin: origin})
		}
	}
	return list
}

// Variable is an entry of the list of variables that sessions get, with its
// origin.
type Variable struct {
	Pattern string
	Origin  policy.Origin
}

// MakeDirs makes the caches of toolchains that do not exist. A session could
// not make them, because only what exists at its start can be granted. Call it
// right before a restricted session starts. It continues after an error.
func (c *Compiled) MakeDirs() error {
	var problems []error
	for _, dir := range c.create {
		if err := fsguard.MkdirAll(dir, 0o700); err != nil {
			problems = append(problems, fmt.Errorf("make directory of a toolchain: %w", err))
		}
	}
	return errors.Join(problems...)
}
